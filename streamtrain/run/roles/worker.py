"""One worker: trains its slots of each round in place, publishes its vector, averages when it is the last.

A process per CPU share or device, of one thread or several. Knows no Kafka.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from streamtrain import _native, exits
from streamtrain.compute import backends, schedules
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.state import attach
from streamtrain.compute.torch import TorchModule, in_process_of_its_own
from streamtrain.errors import CheckFailed

HELP = "trains batches and averages the workers' vectors"


@dataclass(frozen=True)
class Config:
    arena: int  # descriptor
    worker: int
    model: dict[str, Any]  # the model spec
    backend: str
    schedule: dict[str, Any]  # of the learning rate
    isa: str = "auto"
    score_means: bool = False
    restorable: bool = False  # there are snapshots to go back to
    module: dict[str, Any] | None = None  # the network, where it is not of layers
    threads: int = 1  # on a batch
    cores: list[list[int]] = field(default_factory=list)  # by worker, those it runs on; none: on any


def run(config: Config) -> int:
    if config.cores:
        os.sched_setaffinity(0, config.cores[config.worker])  # its threads have that from it
    _native.select_isa(config.isa)
    arena = attach(config.arena)
    network = TorchModule.from_dict(config.module) if config.module else None
    if network is not None:
        in_process_of_its_own()
    model = Model(config.model, network)
    worker = _native.Worker(arena, config.worker)
    if not schedules.is_constant(config.schedule):
        worker.follow(schedules.rates(config.schedule))
    backend = backends.choose(config.backend, calls_out=network is not None)
    if hasattr(backends.get(backend), "register"):  # a device copies faster from memory it has pinned
        backends.get(backend).register(arena.address, arena.bytes, config.worker)
    layout = arena.slot_layout
    addresses = (worker.state_address, worker.base_address, worker.share_address)
    plan = model.compile(backend, layout, *addresses, device=config.worker, threads=config.threads)
    if config.score_means:
        state = aligned(model.state_bytes)
        base, share = aligned(model.statistics_bytes), aligned(model.statistics_bytes)
        scorer = model.compile(backend, layout, state, base, share, device=config.worker, threads=config.threads)
        worker.score_means(scorer, state.ctypes.data, base.ctypes.data, share.ctypes.data)
    while True:
        status = worker.run(plan, 1.0)
        if status == _native.WorkerStatus.FINISHED:
            return 0
        if status == _native.WorkerStatus.LEAVE:
            return exits.RUN_OVER
        if status == _native.WorkerStatus.DIVERGED:
            raise CheckFailed(
                f"training diverges in round {worker.round}: half of the newest batches had a loss, parameters or "
                "optimizer state that are not finite; lower optimizer.learning_rate, standardize large columns"
                + (", or go back with --restore" if config.restorable else "")
            )
