"""The output of a command: documents and lines on stdout, as JSON or for people."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from typing import Any

SCORES = (  # title, name in the metrics
    ("log loss", "log_loss"),
    ("AUC", "auc"),
    ("accuracy", "accuracy"),
    ("top 5", "top_5_accuracy"),
    ("macro F1", "macro_f1"),
    ("MAE", "mae"),
    ("RMSE", "rmse"),
    ("loss", "loss"),
)


def _plain(value: Any) -> Any:
    """JSON for what json does not know: bytes as text where they are, else base64; NumPy values as Python's."""
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(bytes(value)).decode()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


class Output:
    """The writer of a command's result. With `as_json`, only `document` and `line` write."""

    def __init__(self, as_json: bool, *, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet

    def document(self, document: Mapping[str, Any], *human: Any) -> None:
        """The result of the command: as JSON, else what is given for people."""
        if self.as_json:
            print(json.dumps(document, default=_plain, ensure_ascii=False))
        else:
            self.say(*human)

    def line(self, line: Mapping[str, Any], human: str | None = None) -> None:
        """One of many: a JSON line, else a line of text."""
        if self.as_json or human is None:
            sys.stdout.write(json.dumps(line, default=_plain, ensure_ascii=False) + "\n")
        else:
            sys.stdout.write(human + "\n")
        sys.stdout.flush()

    def say(self, *human: Any) -> None:
        """For people only: text, or what rich shows."""
        if self.as_json:
            return
        for item in human:
            if isinstance(item, str):
                print(item, flush=True)
            else:
                from streamtrain.cli.console import console

                console().print(item)


def age_text(age_s: float) -> str:
    """An age in the unit one would say it in."""
    for unit, size_s in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if age_s >= size_s:
            return f"{age_s / size_s:.1f} {unit}"
    return f"{age_s:.1f} s" if age_s < 10 else f"{age_s:.0f} s"


def count_text(count: int) -> str:
    """A count as one says it: 3.4 M."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**4)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if unit != "k" else f"{count / 1_000:.0f} k"
    return f"{count:,}"
