"""A job's training without Kafka, in threads of this process."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.compute.metrics import summary
from streamtrain.compute.model import Model
from streamtrain.compute.state import view, views
from streamtrain.job import Job
from streamtrain.run.arena import make_arena


def trained(job: Job, records: Sequence[bytes]) -> dict[str, float]:
    """Returns the figures of one pass on the CPU, every row scored before it is learned, and the number of updates."""
    train, model = job.train, Model(job.model_spec())
    arena, layout = make_arena(job, model), model.layout.published(train.workers)
    start = view(arena.mean_address(0), layout.state_bytes)
    model.layout.begin_lineage(model.initial_state(train.seed), train.workers, start)
    ring = _native.CoordinatorEnd(arena)
    ring.begin(round=-1, learning_rate=job.optimizer.learning_rate, positions=[(0, 0, 0)])
    log = _native.RoundLogThread(ring)
    log.start()
    ring.start()
    source, cutter = _native.MemorySource(), _native.RoundCutter(arena, batch_growth=train.batch_growth or 0)
    ingest = _native.Ingest(cutter, source, job.records.format, native_plan(job.schema, arena.slot_layout))

    def take() -> None:
        ingest.start()
        while ingest.run(1.0) == _native.IngestStatus.WORKING:
            ring.beat()

    def work(index: int) -> None:
        worker = _native.Worker(arena, index)
        addresses = (worker.state_address, worker.base_address, worker.share_address)
        plan = model.compile("cpu", arena.slot_layout, *addresses)
        while worker.run(plan, 1.0) == _native.WorkerStatus.WORKING:
            pass

    with ThreadPoolExecutor(train.workers + 1) as pool:
        running = [pool.submit(take), *(pool.submit(work, index) for index in range(train.workers))]
        assert all(source.put(record, 600.0) for record in records)
        source.end()
    for each in running:
        each.result()
    state = views(layout, view(arena.mean_address(ring.pin_newest()[0]), layout.state_bytes).copy())
    scores = {name: array for name, array in state.items() if name.startswith("score.")}
    return {**summary(scores), "updates": int(state["optimizer.steps"].reshape(-1)[0])}
