"""Findings of what a start would meet in a job, one for each question: right, a warning or a mistake. Writes
nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from streamtrain import _native
from streamtrain.columns.formats import lacks_schema
from streamtrain.columns.rejected import Rejecting
from streamtrain.columns.row_plan import cell_path
from streamtrain.errors import KafkaUnreachable, SnapshotError, UserMistake
from streamtrain.files.file_records import FileRecords
from streamtrain.files.found import FoundFile
from streamtrain.job import Job
from streamtrain.job.round_sizes import SLOW_ROWS_PER_S, largest_rates
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import Message
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.record_sources.source_kind import source_of
from streamtrain.record_sources.topic_source import record_source_of
from streamtrain.record_sources.validation_set import load_validation_set, named_files
from streamtrain.run.arena import slot_count, slot_layout
from streamtrain.run.cores import cores_of_workers, crowded, format_cores, usable_count
from streamtrain.run.lineage import check_fit, resumed_lineage
from streamtrain.schemas import SchemaRegistry, decoded_by, is_framed, registry_of, with_schema
from streamtrain.topics.chunks import Located

MB = 1_000_000
MOST_REASONS = 5
EXAMPLE_ROWS = 10_000  # of which the updates are told
RANGE_CAPACITY = 16  # a slot needs some; none are written here
RING_BYTES = 2 * 1024 * MB  # above it a ring is worth a warning


@dataclass(frozen=True)
class Finding:
    """`what` was asked, and the answer."""

    what: str
    state: Literal["ok", "warning", "mistake"]
    text: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def findings(
    job: Job, admin: Admin, records: Iterable[Message] | None, files: Sequence[FoundFile] = (), sample: int = 0
) -> Iterator[Finding]:
    """Every finding, in the order one would ask. Raises KafkaUnreachable: without a broker there is nothing to find.

    `records`: some of the job's, asked for only where their topic is there; None: they are not looked at. `files`: what
    it will be trained on in the topic's place, and how many rows of them are looked at.
    """
    text = f"{len(job.schema.columns)} columns, {', '.join(job.model.losses)}, digest {job.digest()[:12]}"
    yield Finding("job file", "ok", text)
    for warning in job.warnings:
        yield Finding("job file", "warning", str(warning))
    yield _cores(job)
    names = admin.names()
    yield Finding("broker", "ok", f"{job.kafka.bootstrap} answers, {len(names)} topics")
    if (registry := registry_of(job)) is not None:
        job, finding = _registry(job, registry)
        yield finding
    newest = _newest(job)
    off_topic = isinstance(newest, Located) and source_of(newest.manifest.positions.topic_id).off_topic
    yield from _topics(job, admin, bool(files or off_topic))
    yield from _durability(job, admin)
    yield _snapshot(job, admin, newest, files)
    yield from _sizes(job)
    if lacks_schema(job.records.named):
        return  # nobody can read the records yet
    yield from _validation_set(job, admin, newest)
    if files:
        yield from _files(job, files, sample)
    elif str(job.topic("records").name) in names and records is not None:
        yield from _records(job, records)


def _cores(job: Job) -> Finding:
    """Checks whether this machine has the cores that the workers need."""
    try:
        pinned = cores_of_workers(job)
    except UserMistake as error:
        return Finding("cores", "mistake", str(error))
    if problem := crowded(job):
        return Finding("cores", "warning", problem)
    where = f", {'; '.join(map(format_cores, pinned))}" if pinned else ""
    return Finding("cores", "ok", f"{job.train.workers * job.train.threads_per_worker} of {usable_count()} busy{where}")


def _registry(job: Job, registry: SchemaRegistry) -> tuple[Job, Finding]:
    """Checks whether the registry answers and whether the job's columns can take the topic's newest schema.

    The returned job knows its schema, if it uses the registry's and that is available.
    """
    where = job.registry.address
    try:
        newest = registry.newest()
        job = with_schema(job, 0)
    except KafkaUnreachable as error:
        return job, Finding("registry", "warning", f"{where}: {error}; records whose schema is not known yet wait")
    except UserMistake as error:
        return job, Finding("registry", "mistake", f"{where} answers, {error}")
    return job, _newest_schema(job, registry, newest)


def _newest_schema(job: Job, registry: SchemaRegistry, newest: int | None) -> Finding:
    where = job.registry.address
    if newest is None or not is_framed(job.records.named):
        return Finding("registry", "ok", f"{where} answers, {registry.subject} has no schema that records name")
    layout = _native.SlotLayout.make(1, RANGE_CAPACITY, job.schema.block_specs())
    filler = _native.BatchFiller(decoded_by(job.records.named, registry.ask), job.schema.native_plan(layout))
    frame = b"\0" + newest.to_bytes(4, "big")
    ((_, _, path, reason, _),) = filler.count([frame]).dead_rows
    refused = reason.startswith(f"schema {newest}: ")
    text = f"{path}: {reason}" if refused else f"the newest of {registry.subject} is {newest}, which the columns take"
    return Finding("registry", "warning" if refused else "ok", f"{where} answers, {text}")


def _topics(job: Job, admin: Admin, of_files: bool) -> Iterator[Finding]:
    """`of_files`: the records topic is not read."""
    try:
        changes = admin.ensure(job.topic_wishes(), dry_run=True)
    except UserMistake as error:
        yield Finding("topics", "mistake", str(error))
        return
    missing = [change.wish.name for change in changes if change.action != "exists"]
    records = str(job.topic("records").name)
    if of_files and records in missing:
        missing.remove(records)
        text = f"{records} is not there, and files are trained without it; `streamtrain topics create` makes it too"
        yield Finding("topics", "ok", text)
    if missing:
        yield Finding(
            "topics", "mistake", f"not there: {', '.join(missing)}; make them with `streamtrain topics create`"
        )
    else:
        there = sum(change.action == "exists" for change in changes)
        yield Finding("topics", "ok", f"all {there} are there" if there == len(changes) else f"the {there} others are")
    for change in changes:
        if change.differences:
            yield Finding("topics", "warning", f"{change.wish.name}: {'; '.join(change.differences)}")


def _durability(job: Job, admin: Admin) -> Iterator[Finding]:
    """Settings of Kafka by which records are kept too short a time, or on too few disks."""
    names = [str(job.topic(key).name) for key in ("records", "snapshots")]
    brokers = admin.broker_count()
    for state in admin.describe(names).values():
        if state is None:
            continue
        if state.compacted and state.name == names[0]:
            text = "once records are compacted away `verify` counts them as not checkable and `replay` ends with code 5"
            yield Finding("topics", "warning", f"{state.name}: cleanup.policy is {state.cleanup_policy}; {text}")
        copies = state.replication
        if copies == 1 and brokers > 1:
            text = f"1 copy on {brokers} brokers, a lost disk loses it; 3 copies are usual"
            yield Finding("topics", "warning", f"{state.name}: {text}")
        elif copies > 1 and state.min_insync_replicas == 1:
            text = "what is acknowledged may be on one disk only; 2 is usual"
            yield Finding("topics", "warning", f"{state.name}: min.insync.replicas is 1 of {copies} copies, {text}")


def _newest(job: Job) -> Located | SnapshotError | None:
    with SnapshotTopic(job.name, job.kafka.bootstrap, job.kafka_consumer()) as topic:
        try:
            return topic.newest_manifest()
        except SnapshotError as error:
            return error


def _snapshot(
    job: Job, admin: Admin, newest: Located | SnapshotError | None, files: Sequence[FoundFile]
) -> Finding:
    if isinstance(newest, SnapshotError):
        return Finding("snapshot", "mistake", str(newest))
    if newest is None:
        return Finding("snapshot", "ok", "none yet; training begins with fresh parameters")
    manifest = newest.manifest
    off_topic = source_of(manifest.positions.topic_id).off_topic
    topic_alone = str(job.topic("records").name) in admin.names() and not off_topic
    try:  # what a start would ask
        added = check_fit(job, manifest)
        if files or topic_alone:
            resumed_lineage(record_source_of(job, job.kafka_consumer(), admin, files), newest, accept_gap=False)
    except UserMistake as error:
        return Finding("snapshot", "mistake", str(error))
    text = f"{manifest.version} fits; training goes on from it, {manifest.rows_seen:,} rows seen"
    if added:
        text += f"; the next start adds {', '.join(added)} and keeps what was learned"
    if off_topic and not files:
        text += f", of {off_topic}: whether it can read on in them, `check --files` says"
    return Finding("snapshot", "ok", text)


def _sizes(job: Job) -> Iterator[Finding]:
    layout, count = slot_layout(job), slot_count(job)
    ring_bytes = layout.slot_bytes * count
    slots = f"{count} slots of {layout.row_capacity} rows, {layout.slot_bytes / layout.row_capacity:.0f} bytes each"
    text = f"ring {ring_bytes / MB:,.1f} MB ({slots})"
    yield Finding("sizes", "warning" if ring_bytes > RING_BYTES else "ok", text)
    growth, train = job.train.batch_growth, job.train
    most = f"{train.update_rows} rows"
    least = job.rounds.min_batch_rows
    grown = most if growth is None else f"{least} to {most}, a row more every {growth:,}"
    text = f"batches of {grown}, {job.rounds.averaging_frequency} of each worker in a round"
    text += f"; {EXAMPLE_ROWS:,} rows make {job.rounds.updates(EXAMPLE_ROWS, train):,} updates"
    yield Finding("updates", "ok", text)
    snapshot_bytes = job.state_bytes
    first, later = largest_rates(train, job.rounds, snapshot_bytes)
    text = f"averaging allows at most {first:,.0f} rows/s with the first batches, {later:,.0f} with full-grown ones"
    yield Finding("rows/s", "warning" if later < SLOW_ROWS_PER_S else "ok", text)
    rate = snapshot_bytes / job.publish.interval_s
    yield Finding("sizes", "ok", f"snapshot {snapshot_bytes / MB:,.2f} MB, at most {rate / MB:,.2f} MB/s")


def _validation_set(job: Job, admin: Admin, newest: Located | SnapshotError | None) -> Iterator[Finding]:
    """Checks whether early stopping has its validation set."""
    early, registry = job.train.early_stopping, registry_of(job)
    of_topic = early is not None and early.held_out is not None and early.held_out.topic is not None
    if of_topic and registry is not None and is_framed(job.records.named):
        try:
            registry.newest()
        except KafkaUnreachable as error:  # a start would wait
            yield Finding("held out", "warning", f"not looked at, {error}")
            return
    metrics = newest.manifest.metrics if isinstance(newest, Located) else {}
    try:
        validation = load_validation_set(job, named_files(job), job.kafka_consumer(), admin, metrics)
    except UserMistake as error:
        yield Finding("held out", "mistake", str(error))
    else:
        if validation is not None:
            yield Finding("held out", "ok", f"{validation.rows.rows:,} rows")


def _files(job: Job, files: Sequence[FoundFile], sample: int) -> Iterator[Finding]:
    """Yields what training would do with the first rows of the files."""
    yield Finding("files", "ok", f"{len(files)} files, {sum(file.rows for file in files):,} rows")
    if not sample:
        return
    plan = job.plan()
    rejecting = Rejecting(1.0, reports=False)
    given = FileRecords(job, [file.path for file in files], None, sample, plan.bare, rejecting)
    rows: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    try:
        for batch in plan.batches(given, bare=True, copy=False):
            rows.update(trained=batch.count, filtered=batch.filtered)
            for each in batch.left_out:
                reasons[f"{cell_path(each.path)}: {each.reason}"] += each.row_to - each.row_from
    except UserMistake as error:
        yield Finding("files", "mistake", str(error))
    reasons.update(row.reason for row in rejecting.found)
    rows["dead"] = reasons.total()
    yield from _row_findings(job, f"{given.rows:,} rows of files", rows, reasons)


def _records(job: Job, messages: Iterable[Message]) -> Iterator[Finding]:
    """Yields what training would do with these records."""
    layout = _native.SlotLayout.make(job.train.update_rows, RANGE_CAPACITY, job.schema.block_specs())
    registry = registry_of(job)
    format = decoded_by(job.records.named, registry.ask if registry is not None else None)
    filler = _native.BatchFiller(format, job.schema.native_plan(layout))
    rows: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    records = 0
    for message in messages:
        records += 1
        if message.value is None:
            rows["tombstones"] += 1
            continue
        tally = filler.count([message.value], around=[message.around()])
        rows.update(trained=tally.trained, dead=tally.dead, filtered=tally.filtered)
        for start, to, path, reason, _ in tally.dead_rows:
            reasons[f"{path}: {reason}"] += to - start
    if not records:
        yield Finding("records", "ok", "none there yet")
        return
    yield from _row_findings(job, f"{records:,} records", rows, reasons)


def _row_findings(job: Job, of: str, rows: Counter[str], reasons: Counter[str]) -> Iterator[Finding]:
    """Yields what became of the rows, and why."""
    share = rows["dead"] / max(1, rows["trained"] + rows["dead"] + rows["filtered"])
    counts = ", ".join(f"{count:,} {name}" for name, count in rows.items() if count)
    above = share > job.records.max_dead_letter_share
    yield Finding("records", "mistake" if above else "ok", f"{of}: {counts}")
    for reason, count in reasons.most_common(MOST_REASONS):
        yield Finding("records", "warning", f"{count:,} rows: {reason}")
