"""Rows of a block that are whoever another block says: zero once that one has lost its place, moments too."""

from __future__ import annotations

import numpy as np
import pytest

from streamtrain.compute.ops.vocabulary import Table, add_value, empty
from tests.state.block_rounds import BlockRounds, Spec

CAPACITY = 3
TABLES = {"table": "learned", "moments": "learned", "kept": "local"}
BLOCKS: list[Spec] = [(name, "g", rule, (CAPACITY + 1, 2)) for name, rule in [*TABLES.items(), ("other", "learned")]]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_rows_of_what_is_forgotten_are_zero_in_every_block_that_is_its(workers: int) -> None:
    known = empty(CAPACITY, admit=1, evict_ms=10)
    for id_, newest_ms in ((1, 5), (2, 95), (3, 7)):
        Table(known).put(id_, 1000 + id_, 4, newest_ms)
    ones = {name: np.ones((CAPACITY + 1, 2), np.float32) for name, *_ in BLOCKS}
    blocks: list[Spec] = [*BLOCKS, ("words", "g", "vocabulary", known.shape)]
    run = BlockRounds(blocks, workers, {"words": known, **ones}, dict.fromkeys(TABLES, "words"))
    share = empty(CAPACITY)
    add_value(Table(share), Table(known), 77, 100)
    idle = {"words": empty(CAPACITY)}
    found = run.train([{**ones, "words": share}, *[{**ones, **idle}] * (workers - 1)], [1.0] * workers)
    assert [entry[0] for entry in Table(found["words"]).entry[:CAPACITY].tolist()] == [77, 1002, 0]
    for name, rule in TABLES.items():
        for worker in range(workers):
            its = found[f"{name}@{worker}"][0] if rule == "local" else found[name]
            assert its.any(axis=1).tolist() == [True, False, True, False], name
    assert found["other"].all()
    again = run.train([{**ones, **idle}] * workers, [1.0] * workers)
    assert all(again[name].all() for name, rule in TABLES.items() if rule == "learned")
