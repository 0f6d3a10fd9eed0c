"""Of an iterator of frames only the one at hand is held."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamtrain.columns.records import Records
from streamtrain.job import Job


class Frame(dict[str, Any]):
    """A dict that may be referred to weakly."""


def test_the_first_is_let_go_like_the_others() -> None:
    job = Job.from_tables({"columns": {"x": {}, "y": {"role": "label"}}, "model": {"layers": []}})
    given: list[weakref.ref[Frame]] = []

    def frames() -> Iterator[Frame]:
        for _ in range(5):
            frame = Frame(x=np.zeros(4, "f4"), y=np.zeros(4, "f4"))
            given.append(weakref.ref(frame))
            yield frame
            del frame

    records = Records(job.schema, job.records.named, "rows", 1024, 1 << 20)
    for _ in records.blocks(frames(), key=None, own_keys=False):
        assert sum(frame() is not None for frame in given) == 1
