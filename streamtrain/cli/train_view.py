"""Shows the progress of `streamtrain train`: a live panel on a terminal, plain lines elsewhere, or JSON lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from streamtrain.cli.output import SCORES, Output, age_text, count_text
from streamtrain.compute.metrics import by_head

Event = dict[str, Any]
_PLAIN_EVERY_S = 5.0


def _quality(scores: Event | None) -> str:
    """`log_loss 0.2840 (constant 0.5400), auc 0.8950`; of several heads `loss 0.3120, late log_loss 0.2840 (…), …`."""
    texts = []
    for head, found in by_head(scores or {}).items():
        for name in (name for _, name in SCORES if name in found):
            constant = found.get(f"constant_{name}")
            label = f"{head} {name}".strip()
            texts.append(f"{label} {found[name]:.4f}" + ("" if constant is None else f" (constant {constant:.4f})"))
    return ", ".join(texts)


def _spans(partitions: Sequence[int]) -> str:
    """`partition 3`, `partitions 0-2, 5`."""
    spans: list[list[int]] = []
    for partition in partitions:
        if spans and partition == spans[-1][1] + 1:
            spans[-1][1] = partition
        else:
            spans.append([partition, partition])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return f"partition{'s' if len(partitions) > 1 else ''} {', '.join(texts)}"


class TrainView:
    """Takes the supervisor's events; used as a context manager around the training. `log` gets its lines if given.

    Deaths and new runs are warnings of the supervisor's own log, and not said again.
    """

    def __init__(self, out: Output, job: str, log: Callable[[str], object] | None = None) -> None:
        self._out = out
        self._job = job
        self._log = log
        self._panel: Any = None
        if sys.stderr.isatty() and not (out.as_json or out.quiet or log):
            from streamtrain.cli.train_panel import TrainPanel

            self._panel = TrainPanel()
        self._published: Event = {}
        self._rows = 0
        self._rate = 0.0
        self._at = 0.0
        self._said_at = 0.0
        self._of_rows: int | None = None  # that files hold

    def __enter__(self) -> TrainView:
        if self._panel:
            self._panel.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._panel:
            self._panel.stop()

    def __call__(self, event: Event) -> None:
        if self._out.as_json:
            self._out.line(event)
            return
        kind = event["event"]
        if kind == "started":
            self._of_rows = event.get("origin_rows")
            self._say(self._start(event))
        elif kind == "published":
            self._published = event
        elif kind == "progress":
            self._progress(event)
        elif kind == "ended":
            self._end(event)
        elif kind == "joined":
            self._say(f"joined as {event['host']}: {_spans(event['partitions'])}")
        elif kind == "leads":
            self._say(f"{event['host']} leads")
        elif kind == "refused" and event["rows"]:
            self._say(f"{event['rows']:,} rows are trained again, from snapshot {event['version']}")
        elif kind == "stopped_early":
            self._say(f"{self._job}: {event['why']}")

    def _start(self, event: Event) -> str:
        if not event["resumed"]:
            return f"starting {self._job} at snapshot {event['version']}, untrained"
        rows = f"{count_text(event['rows'])} rows"
        if "added" in event:
            names = ", ".join(event["added"])
            return f"added {names} to snapshot {event['restored']} of {self._job} as {event['version']}, {rows}"
        if "restored" in event:
            return f"restored snapshot {event['restored']} of {self._job} as {event['version']}, {rows}"
        return f"resuming {self._job} at snapshot {event['version']}, {rows}"

    def _say(self, text: str) -> None:
        if self._log is not None:
            self._log(text)
        elif self._panel:
            self._panel.say(text)
        elif not self._out.quiet:
            print(text, file=sys.stderr, flush=True)

    def _progress(self, event: Event) -> None:
        now = time.monotonic()
        if self._at and event["rows"] >= self._rows:
            rate = (event["rows"] - self._rows) / max(now - self._at, 1e-6)
            self._rate = rate if not self._rate else 0.7 * self._rate + 0.3 * rate
        self._rows, self._at = event["rows"], now
        if self._panel:
            self._panel.show(self._figures(event), self._published.get("metrics", {}))
        elif now - self._said_at >= _PLAIN_EVERY_S and self._published:
            self._said_at = now
            self._say(self._line())

    def _line(self) -> str:
        quality = _quality(self._published.get("metrics", {}).get("total"))
        updates = f"{self._updates:,} updates, " if self._updates else ""
        version = self._published["version"]
        rows = f"{self._published['rows']:,} rows{self._share}"
        return f"{rows}, {self._rate:,.0f}/s, {updates}snapshot {version}, {quality}"

    @property
    def _share(self) -> str:
        """` (read 1,024 of 4,096, 25 %)` of files."""
        if not self._of_rows:
            return ""
        read = sum(offset + row for offset, row in self._published.get("positions", ()))
        return f" (read {read:,} of {self._of_rows:,}, {100 * read // self._of_rows} %)"

    @property
    def _updates(self) -> int:
        return int(self._published.get("metrics", {}).get("updates", 0))

    def _figures(self, event: Event) -> Iterator[tuple[str, str, str]]:
        """Yields the panel's rows: name, figure, remark."""
        waiting = " (Kafka cannot be reached, waiting)" if event.get("unreachable") else ""
        yield "rows", f"{self._published.get('rows', 0):,}{self._share}", f"{self._rate:,.0f}/s{waiting}"
        age_s = self._published.get("event_age_s")
        age = "" if age_s is None else f"newest row {age_text(age_s)} old"
        yield "updates", f"{self._updates:,}", ""
        yield "snapshot", str(self._published.get("version", "")), age
        dead = sum(self._published.get("dead_letters", {}).values())
        if dead:
            yield "dead letters", f"{dead:,}", "in the newest publication"

    def _end(self, event: Event) -> None:
        dead = sum(event["dead_letters"].values())
        note = f", {dead:,} rows dead lettered" if dead else ""
        self._say(f"{self._job}: snapshot {event['version']}, {event['rows']:,} rows{note}")
