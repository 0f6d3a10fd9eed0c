"""Texts as the n-grams of their words and letters: the same in every format and in a program's rows, and learned."""

from __future__ import annotations

import json
import random
from typing import Any

import msgpack
import numpy as np
import pytest
from example_format import plain_formats, row_formats, with_schema
from long_tables import in_full_all
from looped import over
from numpy_predict import murmur3
from slots import RowSlot, decode_rows

import streamtrain
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns.conftest import each_way
from tests.columns.reference import Around
from tests.oracles.kinds.text import entries_of
from tests.oracles.records import encode_rows

WORDS: dict[str, Any] = {"kind": "text", "buckets": 1 << 20, "most": 6, "missing": ""}
LATE = {"late": {"role": "label", "missing": 1}}


def schema_of(**settings: Any) -> Schema:
    return Schema.from_columns({"words": {**WORDS, **settings}, **LATE}, "binary_cross_entropy")


def buckets(*entries: str) -> list[int]:
    return [murmur3(entry.encode(), murmur3(b"words", 0)) % (1 << 20) for entry in entries]


def found(slot: RowSlot, rows: int) -> list[list[int]]:
    return [row.tolist() for row in slot.views[block_name("words")][:rows]]


CELLS: list[tuple[dict[str, Any], Any, list[str]]] = [
    ({}, "Late, AGAIN: late!", ["late", "again", "late"]),
    ({"lower_case": False}, "Late again", ["Late", "again"]),
    ({"ngrams": [1, 2]}, "a  b-c", ["a", "a b", "b", "b c", "c"]),
    ({"ngrams": 2}, "a b c", ["a b", "b c"]),
    ({"ngrams": [2, 3]}, "x y", ["x y"]),
    ({"ngrams": 3}, "x y", []),
    ({}, " ... ", []),
    ({}, 12, ["12"]),
    ({}, -7, ["7"]),
    ({}, True, ["true"]),
    ({}, "Ünïted_Straße 日本 x²", ["ünïted", "straße", "日本", "x²"]),
    ({}, "e\u0301te\u0301 \u0939\u093f\u0928", ["e\u0301te\u0301", "\u0939\u093f\u0928"]),
    ({}, "\u0130I \U00010400\U0001f6eb\u2165", ["\u0130i", "\U00010428", "\u2175"]),
    ({"by": "char", "ngrams": 3}, "A b\u00c9", ["a b", " b\u00e9"]),
    ({"by": "char"}, "\U0001f6eb\n", ["\U0001f6eb", "\n"]),
    ({"most": 3, "cut": True, "ngrams": [1, 8]}, "a b c d", ["a", "a b", "a b c"]),
]  # fmt: skip


@over(("settings", "cell", "entries"), CELLS)
def test_a_text_is_its_entries_hashed(settings: dict[str, Any], cell: Any, entries: list[str]) -> None:
    schema = schema_of(**settings)
    for way, slot, rows, _ in each_way(schema, {"words": cell, "late": 1}, plain_formats(schema)):
        assert found(slot, rows) == [buckets(*entries)], way


def test_a_text_of_too_many_entries_is_a_dead_letter() -> None:
    rows = [{"words": "a b", "late": 1}, {"words": "a b c d e f g", "late": 1}, {"words": "c", "late": 0}]
    for form in plain_formats(schema_of()):
        blocks, tally = decode_rows(form, schema_of(), encode_rows(form, schema_of(), rows))
        assert [(each.row_from, each.reason) for each in tally.dead_rows] == [
            (1, "expected at most 6 values, got 7")
        ], form
        assert len(blocks["label"]) == 2


@over(("settings", "cell"), [(settings, cell) for settings, cell, _ in CELLS if isinstance(cell, str)])
def test_what_stands_in_has_no_more_entries_than_a_row_may(settings: dict[str, Any], cell: str) -> None:
    count = len(entries_of(schema_of(**settings).columns[0][1], cell))
    schema_of(**{**settings, "missing": cell, "most": max(count, 1), "cut": False})
    if count > 1:
        with pytest.raises(UserMistake, match=f"expected a text of at most {count - 1} entries, got {count}"):
            schema_of(**{**settings, "missing": cell, "most": count - 1, "cut": False})


def test_what_stands_around_a_record(same: Any) -> None:
    columns = {"words": {**WORDS, "from": "headers.said", "ngrams": [1, 2]}, "x": {}, **LATE}
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    for form in plain_formats(schema):
        record = encode_rows(form, schema, [{"x": 1, "late": 1}] * 20)
        for said in (b"Late \xc3\x89t\xc3\xa9", b"", b"a b c d e", b"\xff"):
            around = Around(1, 2, 3, None, (("said", said),))
            assert same(schema, form, record, 64, around).rows == 20


SCHEMAS = {
    "words": schema_of(ngrams=[1, 2], missing="none"),
    "letters": schema_of(by="char", ngrams=[2, 3], cut=True, hash_bits=64, lower_case=False),
    "filtered": schema_of(missing="skip"),
    "requests": schema_of(missing="dead_letter").for_requests(),
}


@in_full_all()
@over("name", SCHEMAS)
def test_native_and_slow_agree_on_generated_texts(same: Any, name: str, take: Any) -> None:
    """Checks records where one byte is another, and cut ones too."""
    chance = random.Random(name)
    letters = [*"aB ._7\u00e9\u0301\u0130\u2165\u65e5\0", "  ", "\U0001f6eb", "\U000e0101"]
    for _ in take(range(800)):
        row = {"words": "".join(chance.choices(letters, k=chance.randrange(12))), "late": 1}
        for record, form in ((json.dumps(row, ensure_ascii=False).encode(), "json"), (msgpack.packb(row), "msgpack")):
            at = chance.randrange(len(record))
            other = record[:at] + bytes([chance.choice(b' "\x80\xc3\xff')]) + record[at + 1 :]
            for given in (record, other, record[:at]):
                same(SCHEMAS[name], form, given)


def test_a_field_of_a_schema() -> None:
    schema, fields = schema_of(), {"words": "text", "late": "number"}
    typed = [given for given in (with_schema(form, fields) for form in row_formats()) if isinstance(given, dict)]
    assert len(typed) > 1
    for given in typed:
        slot = RowSlot(schema, 4, given)
        ((rows, _),) = list(slot.record(encode_rows(given, schema, [{"words": "A b", "late": 1}])))
        assert found(slot, rows) == [buckets("a", "b")]


def test_transforms_make_texts() -> None:
    transforms = {"words": {"split": "raw", "by": "/", "part": 1, "kind": "text", "buckets": 1 << 20, "ngrams": [1, 2]}}
    raw = {"raw": {"role": "input", "kind": "category"}}
    schema = Schema.from_columns({**raw, **LATE}, "binary_cross_entropy", transforms)
    rows = [{"raw": "x/Late again/y", "late": 1}] * 20
    for form in plain_formats(schema):
        slot = RowSlot(schema, 32, form)
        ((count, _),) = list(slot.record(encode_rows(form, schema, rows)))
        assert found(slot, count) == [buckets("late", "late again", "again")] * 20


TOPICS = {0: ["fog", "delay", "cancelled", "queue"], 1: ["sun", "early", "smooth", "quiet"]}
SAME = ["the", "flight", "was", "we", "and", "it", "then", "gate"]


def stories(count: int) -> list[dict[str, Any]]:
    """Texts of which a word says the label, and one pair of words turns it around."""
    chance = np.random.default_rng(3)
    rows = []
    for _ in range(count):
        label = int(chance.random() < 0.5)
        turned = chance.random() < 0.3
        words = chance.choice(SAME, chance.integers(3, 9)).tolist()
        topic = str(chance.choice(TOPICS[label ^ turned]))
        words.insert(int(chance.integers(len(words) + 1)), f"not {topic}" if turned else topic)
        rows.append({"words": " ".join(words).title() + ".", "late": label})
    return rows


@pytest.mark.parametrize("embed", [None, pytest.param(4, marks=pytest.mark.full)], ids=["linear", "embedded"])
def test_which_words_occur_is_learned(embed: int | None) -> None:
    """The pairs too: alone, words could say it in 7 of 10 rows."""
    settings: dict[str, Any] = {"kind": "text", "buckets": 1 << 14} | ({} if embed is None else {"embed": embed})
    rows = stories(4_000)
    found = {}
    for ngrams in (1, [1, 2]):
        tables = {
            "columns": {"words": {**settings, "ngrams": ngrams}, "late": {"role": "label"}},
            "records": {"format": "json"}, "optimizer": {"name": "adam", "learning_rate": 0.02},
            "model": {"layers": [{"dense": 8}] if embed else [], "loss": "binary_cross_entropy"},
            "train": {"batch_rows": 32, "workers": 1, "round_interval": "off"},
        }  # fmt: skip
        found[str(ngrams)] = streamtrain.fit(tables, rows).manifest.metrics["total"]
    assert found["[1, 2]"]["log_loss"] < 0.2 < 0.69 < found["[1, 2]"]["constant_log_loss"], found
    assert found["1"]["log_loss"] > 0.5, found
