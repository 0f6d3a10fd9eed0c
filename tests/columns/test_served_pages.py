"""Large snapshots that follow one another: pages that are equal lie in memory once, and each predicts its own."""

from __future__ import annotations

import gc
import mmap
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from publisher import Publisher, example_manifest
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel
from streamtrain.columns import served as serving
from streamtrain.columns.served import Served
from streamtrain.compute import snapshot
from streamtrain.compute.model import Model
from streamtrain.errors import SnapshotError

ROWS, WIDTH = 1 << 15, 32  # a table of 4 MiB
MODEL = SmallModel.make({"c": {"kind": "category", "buckets": ROWS, "embed": WIDTH}, "late": {"role": "label"}})
TABLE_BYTES = ROWS * WIDTH * 4
REQUEST = {"c": [str(number) for number in range(500)]}
PAGE = mmap.PAGESIZE


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LEAST_BYTES", 0)


def payload(changed: int = 0, seed: int = 1) -> bytes:
    """Returns the state of a seed, with so many rows of the table changed."""
    model = Model(MODEL.spec)
    state = MODEL.state(seed)
    (table,) = (block for name, block in model.views(state).items() if name.startswith("c.") and len(block) == ROWS)
    table[np.random.default_rng(changed).choice(ROWS, changed, replace=False)] += 1
    return snapshot.model_payload(model.layout, state)


def served(version: int, content: bytes, before: Served | None = None) -> Served:
    manifest = example_manifest(version, model_spec=MODEL.spec, schema=MODEL.schema.to_dict())
    return Served.of(manifest, bytes([version]) * 32, content, before)


def answers(one: Served) -> list[Any]:
    outputs, failed = one.row_scorer(256, free_from=1).score_columns(REQUEST)
    assert failed == []
    return list(outputs)


def alone(content: bytes) -> list[Any]:
    return answers(served(1, content))


def own_bytes(one: Served) -> int:
    """Memory that only this one's mapping holds."""
    address = one._parameters.ctypes.data
    mapping = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if span := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            mapping = int(span[1], 16) <= address < int(span[2], 16)
        elif mapping and line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the state lies in no mapping")


def files() -> dict[int, int]:
    """The files of memory that this process has open: a descriptor of each by its inode."""
    descriptors = (int(name) for name in os.listdir("/proc/self/fd") if Path(f"/proc/self/fd/{name}").is_symlink())
    return {os.fstat(fd).st_ino: fd for fd in descriptors if "streamtrain-state" in os.readlink(f"/proc/self/fd/{fd}")}


def test_a_few_rows_changed_are_all_that_the_second_holds() -> None:
    before, after = payload(), payload(changed=20)
    first = served(1, before)
    second = served(2, after, first)
    assert own_bytes(first) == 0 and 0 < own_bytes(second) <= (20 * 2 + 8) * PAGE < TABLE_BYTES / 8
    assert answers(first) == alone(before) and answers(second) == alone(after) != alone(before)


def test_they_go_in_any_order_and_later_ones_share_with_what_is_left() -> None:
    payloads = [payload(changed) for changed in (0, 20, 30)]
    expected = [alone(each) for each in payloads]
    first = served(1, payloads[0])
    second = served(2, payloads[1], first)
    del first
    gc.collect()
    third = served(3, payloads[2], second)
    assert own_bytes(third) < TABLE_BYTES / 8 and answers(second) == expected[1]
    del second
    gc.collect()
    assert answers(third) == expected[2]


def test_one_that_differs_much_begins_anew_and_nothing_stays_open() -> None:
    gc.collect()
    open_before = files().keys()
    first = served(1, payload())
    other = payload(seed=2)
    second = served(2, other, first)
    assert own_bytes(second) == 0 and len(files().keys() - open_before) == 2
    assert answers(second) == alone(other)
    del first
    gc.collect()
    assert len(files().keys() - open_before) == 1
    del second
    gc.collect()
    assert files().keys() == open_before


def test_nobody_writes_what_predicts() -> None:
    gc.collect()
    open_before = files().keys()
    first = served(1, payload())
    second = served(2, payload(changed=20), first)
    for one in (first, second):
        with pytest.raises(ValueError, match="read-only"):
            one._parameters[0] = 1
    (file,) = files().keys() - open_before
    with pytest.raises(PermissionError):
        os.pwrite(files()[file], b"x", 0)


def test_a_payload_that_does_not_fit_is_refused_beside_one_that_does() -> None:
    first = served(1, payload())
    expected = answers(first)
    with pytest.raises(SnapshotError, match="does not fit"):
        served(2, SmallModel.make().payload(1), first)
    assert answers(first) == expected


def test_without_a_file_to_open_it_has_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", none_left)
    assert answers(served(1, payload())) == alone(payload())


def test_a_live_model_shares_with_the_one_before(kafka: Any) -> None:
    job = str(kafka.fresh_name("pages"))
    publisher = Publisher(kafka.bootstrap, job)
    payloads = {version: payload(10 * version) for version in (1, 2, 3)}
    manifest_fields = {"model_spec": MODEL.spec, "schema": MODEL.schema.to_dict()}
    publisher.put(1, payloads[1], **manifest_fields)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(120)
        assert model._scorer is not None
        for version in (2, 3):
            publisher.put(version, payloads[version], **manifest_fields)
            wait_for(lambda version=version: model.version == version)
            one = model._scorer.served
            assert 0 < own_bytes(one) < TABLE_BYTES / 8 and answers(one) == alone(payloads[version])
