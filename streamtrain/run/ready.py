"""The beginning of an ingest, for every record source.

Used by the ingests.
"""

from __future__ import annotations

from streamtrain import _native

_WAIT_S = 0.5


def wait_ready(arena: _native.Arena) -> bool:
    """Until the coordinator has put parameters and positions in place; False where the run is over."""
    ring = _native.IngestEnd(arena)
    while not ring.wait_ready(_WAIT_S):
        if ring.stop() == _native.Stop.LEAVE:
            return False
    return True


def round_cutter(
    arena: _native.Arena, round_interval_s: float | None, batch_growth: int | None, min_batch_rows: int
) -> _native.RoundCutter:
    """Rounds close by the clock where there is an interval, and when they are full."""
    return _native.RoundCutter(
        arena,
        round_interval_ns=-1 if round_interval_s is None else int(round_interval_s * 1e9),
        batch_growth=batch_growth or 0,
        min_batch_rows=min_batch_rows,
    )
