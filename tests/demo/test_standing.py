"""How the demo stands: what the trainer's events come to."""

from __future__ import annotations

from streamtrain.demo.standing import Rate, Standing
from streamtrain.demo.stream import BLOCK_ROWS, Pace


def published(version: int, rows: int, offsets: list[int], **changes: object) -> dict[str, object]:
    window = {"rows": 10_240, "log_loss": version / 100}
    metrics = {"total": {"log_loss": 0.31, "rows": rows}, "window": window}
    event = {"event": "published", "version": version, "rows": rows, "event_age_s": 0.1, "dead_letters": {}}
    return event | {"metrics": metrics, "positions": [[offset, 0] for offset in offsets]} | changes


def test_counts():
    standing = Standing(rows=1_000, sent=900)
    standing.take({"event": "progress", "records": 500, "rows": 480, "unreachable": False})
    assert (standing.read, standing.lag, standing.first_trained_s) == (500, 400, None)
    standing.take(published(2, 580, [300, 310], dead_letters={"$: cut": 2}))
    standing.take(published(3, 680, [350, 360], dead_letters={"$: cut": 1, "$.late: 7": 1}))
    assert (standing.trained, standing.version, standing.read) == (680, 3, 710)
    assert standing.dead == {"$: cut": 3, "$.late: 7": 1}
    assert standing.filtered == 710 - 680 - 4
    assert standing.first_trained_s is not None and standing.age_s < 60
    standing.take({"event": "progress", "records": 5, "rows": 5, "unreachable": True})  # of a new run
    assert standing.read == 710 and standing.unreachable


def test_windows_are_gathered_once_and_only_whole_ones():
    standing = Standing(rows=1_000)
    first = published(1, 5_000, [0])
    first["metrics"] = {"total": {}, "window": {"rows": 5_000, "log_loss": 0.5}}
    for event in (first, published(2, 10_240, [1]), published(2, 10_240, [1]), published(3, 20_480, [2])):
        standing.take(event)
    assert [window["log_loss"] for window in standing.windows] == [0.02, 0.03]


def test_a_rate_is_over_the_last_seconds():
    rate = Rate()
    assert rate.see(0, 10.0) == 0
    assert rate.see(100, 11.0) == 100
    for second in range(2, 10):
        last = rate.see(100 + 10 * second, 10.0 + second)
    assert last == 10


def test_pace():
    assert (Pace(0).block_rows, Pace(0).due_s(10**6)) == (BLOCK_ROWS, 0)
    assert (Pace(5_600).block_rows, Pace(5_600).due_s(5_600)) == (280, 1)
    assert Pace(1).block_rows == 1
