"""Texts decoded into slots by one thread: CSV against pyarrow's reader, words against scikit-learn's hashing, lines of
VW's text and of libsvm against scikit-learn's reader and VW itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import HashingVectorizer

from streamtrain.columns.formats import encode_rows
from streamtrain.columns.schema import Schema
from tests.bench.decode import decoder
from tests.bench.harness import Line, Run, Sides, bench, rates
from tests.bench.learning_streams import DATA

LOSS = "binary_cross_entropy"
LINES, RECORDS = 1_000, 16
CSV: dict[str, dict[str, Any]] = {
    "28 numbers": {**{f"f{i}": {} for i in range(28)}, "late": {"role": "label"}},
    "13 numbers, 26 words": {
        **{f"i{i}": {} for i in range(13)},
        **{f"c{i}": {"kind": "category", "buckets": 1 << 18} for i in range(26)},
        "late": {"role": "label"},
    },
}
ROWS, WORDS, BUCKETS = 512, 40, 1 << 18
RCV1 = DATA / "rcv1" / "rcv1_small.dat"
RCV1_LINES = 100   # a record
SPARSE: dict[str, Any] = {
    "wide": {"kind": "sparse", "buckets": 1 << 18, "most": 4096},
    "late": {"role": "label", "classes": ["-1", "1"]},
}


def csv_lines(columns: dict[str, Any], chance: np.random.Generator) -> list[bytes]:
    """Numbers of five decimal places; words of eight hexadecimal digits, as Criteo's."""
    cells = []
    for column in columns.values():
        if column.get("kind") == "category":
            cells.append([f"{word:08x}" for word in chance.integers(0, 1 << 31, LINES)])
        elif column.get("role") == "label":
            cells.append([str(label) for label in chance.integers(0, 2, LINES)])
        else:
            cells.append([f"{value:.5f}" for value in chance.normal(size=LINES)])
    return [",".join(row).encode() + b"\n" for row in zip(*cells, strict=True)]


def by_pyarrow(columns: dict[str, Any], records: list[bytes], rows: int) -> Callable[[], int]:
    read = pyarrow.csv.ReadOptions(use_threads=False, column_names=list(columns), block_size=1 << 24)
    types = {
        name: pyarrow.string() if column.get("kind") == "category" else pyarrow.float32()
        for name, column in columns.items()
    }
    convert = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)

    def call() -> int:
        tables = (pyarrow.csv.read_csv(pyarrow.BufferReader(each), read, None, convert) for each in records)
        assert sum(table.num_rows for table in tables) == rows
        return rows

    return call


@bench(
    "csv",
    {
        (name,): [
            Line(f"{name}, 1,000 lines a record", "many", "pyarrow", 1),
            Line(f"{name}, a line a record", "one", "pyarrow of all lines", 1),
        ]
        for name in CSV
    },
    rates(cpu=time.process_time), "rows/s", seconds=12.0,
)  # fmt: skip
def csv(run: Run, name: str) -> Sides:
    """CSV into slots against pyarrow's reader on one thread, same bytes and columns. It reads each record of many lines
    by itself; of records of one line it is given all lines at once, for it was not made for them."""
    columns, chance, rows = CSV[name], np.random.default_rng(3), LINES * RECORDS
    schema, packs = Schema.from_columns(columns, LOSS), [csv_lines(columns, chance) for _ in range(RECORDS)]
    many, one = [b"".join(lines) for lines in packs], [line for lines in packs for line in lines]
    return {
        "many": decoder("csv", schema, many, rows, LINES), "one": decoder("csv", schema, one, rows, LINES),
        "pyarrow": by_pyarrow(columns, many, rows), "pyarrow of all lines": by_pyarrow(columns, [b"".join(many)], rows),
    }  # fmt: skip


def texts() -> list[str]:
    random = np.random.default_rng(1)
    words = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), size)) for size in random.integers(2, 10, 5000)]
    rank = np.minimum(random.zipf(1.3, (ROWS, WORDS)), len(words)) - 1
    return [" ".join(words[each] for each in row).capitalize() + "." for row in rank]


@bench(
    "text",
    {
        (1,): [Line("words of JSON", "ours", "scikit-learn's hashing", 10)],
        (2,): [Line("words and pairs of JSON", "ours", "scikit-learn's hashing", 10)],
    },
    rates(), "words/s", seconds=10.0,
)  # fmt: skip
def text(run: Run, size: int) -> Sides:
    """Words, and pairs of words, hashed into slots; the rival hashes the same of texts that are decoded already."""
    given, work = texts(), ROWS * WORDS
    columns = {"words": {"kind": "text", "ngrams": [1, size], "buckets": BUCKETS}, "late": {"role": "label"}}
    schema = Schema.from_columns(columns, LOSS)
    rows = [{"words": text, "late": at % 2} for at, text in enumerate(given)]
    records = [encode_rows("json", schema, rows[at : at + 64]) for at in range(0, ROWS, 64)]
    rival = HashingVectorizer(ngram_range=(1, size), n_features=BUCKETS, norm=None, alternate_sign=False)
    return {
        "ours": decoder("json", schema, records, ROWS, ROWS, work),
        "scikit-learn's hashing": (lambda: rival.transform(given), work),
    }


def by_scikit(path: Path, features: int) -> Callable[[], int]:
    def call() -> int:
        table, _ = load_svmlight_file(str(path))
        assert table.nnz == features
        return features

    return call


def by_vowpal(path: Path, features: int) -> Callable[[], int]:
    import vowpalwabbit

    def call() -> int:
        workspace = vowpalwabbit.Workspace(f"--noop --quiet -b 18 -d {path}")
        workspace.run_parser()
        workspace.finish()
        return features

    return call


@bench(
    "sparse_text",
    [
        Line("vw, rcv1", "vw", "load_svmlight_file", 10),
        Line("vw, rcv1", "vw", "vw --noop", 2),
        Line("libsvm, rcv1", "libsvm", "load_svmlight_file", 10),
    ],
    rates(cpu=time.process_time), "features/s", seconds=12.0,
)
def sparse_text(run: Run) -> Sides:
    """rcv1 as VW's text and as libsvm into slots, against scikit-learn's reader and VW's parser."""
    if not RCV1.exists():
        return dict.fromkeys(("vw", "libsvm", "load_svmlight_file", "vw --noop"), f"no {RCV1.name}")
    vw = RCV1.read_bytes() * 4   # what a call costs beside its lines counts for less
    libsvm, features, folder = vw.replace(b"|f ", b""), vw.count(b":"), run.folder
    (folder / "rcv1.libsvm").write_bytes(libsvm)
    (folder / "rcv1.vw").write_bytes(vw)
    schema, sides = Schema.from_columns(SPARSE, LOSS), dict[str, Any]()
    for form, data in (("vw", vw), ("libsvm", libsvm)):
        lines = data.splitlines(keepends=True)
        records = [b"".join(lines[at : at + RCV1_LINES]) for at in range(0, len(lines), RCV1_LINES)]
        sides[form] = decoder(form, schema, records, len(lines), 1000, features)
    installed = find_spec("vowpalwabbit") is not None
    sides["load_svmlight_file"] = by_scikit(folder / "rcv1.libsvm", features)
    sides["vw --noop"] = by_vowpal(folder / "rcv1.vw", features) if installed else "vowpalwabbit is not installed"
    return sides
