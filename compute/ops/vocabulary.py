"""Vocabularies: ids of values by their hash, and a share of what a batch has (native/base/vocabulary.h)."""

from __future__ import annotations

import numpy as np

from streamtrain import _native
from streamtrain.compute.spec import Array, Op, changed, given, out, size

HELP = "ids of a vocabulary's values, and which values a batch has"
WIDTH = 8   # words for each id
HEAD = _native.VOCABULARY_HEAD


def empty(capacity: int, **head: int) -> Array:
    """The words of a vocabulary of which only the head says something."""
    words = np.zeros((capacity + 1, WIDTH), np.int64)
    words[0] = [head.get(name, 0) for name in HEAD]
    return words


BATCH = size("rows"), size("columns"), size("column")
SIZES = size("capacity"), size("words")
HASHES = given("hashes", "i64", "rows", "columns")
OPS = (
    Op("vocabulary_find", (*BATCH, *SIZES, HASHES, given("base", "i64", "words"), out("index", "i32", "rows")),
       each=("rows",)),
    Op("vocabulary_add",
       (*BATCH, size("t_columns"), size("t_column"), *SIZES, HASHES,
        given("times", "i64", "rows", "t_columns", optional=True), given("weight", "f32", "rows"),
        given("base", "i64", "words"), changed("share", "i64", "words"))),
)   # fmt: skip
