"""Texts taken apart and hashed into slots by one thread: words and pairs of words, against scikit-learn's hashing.

Prints one JSON line per figure, in words a second of the process's CPU time, which a busy machine does not falsify. The
rival hashes the same words and pairs of texts that are decoded already.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np
from bench_decode import rows_per_second
from sklearn.feature_extraction.text import HashingVectorizer
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import encode_rows
from streamtrain.columns.schema import Schema

FIGURES = 2  # lines of a whole run
SMOKE = ["--seconds", "1"]
BAR = 10.0
ROWS, WORDS, BUCKETS = 512, 40, 1 << 18


def texts() -> list[str]:
    random = np.random.default_rng(1)
    words = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), size)) for size in random.integers(2, 10, 5000)]
    rank = np.minimum(random.zipf(1.3, (ROWS, WORDS)), len(words)) - 1
    return [" ".join(words[each] for each in row).capitalize() + "." for row in rank]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    seconds = parser.parse_args().seconds / FIGURES / 2
    given = texts()
    size = sum(map(len, given)) / (ROWS * WORDS)
    rows = [{"words": text, "late": at % 2} for at, text in enumerate(given)]
    for name, ngrams in (("words", [1, 1]), ("words and pairs", [1, 2])):
        words = {"kind": "text", "ngrams": ngrams, "buckets": BUCKETS}
        schema = Schema.from_columns({"words": words, "late": {"role": "label"}}, "binary_cross_entropy")
        filler = _native.BatchFiller("json", RowSlot(schema, ROWS).plan)
        records = [encode_rows("json", schema, rows[at : at + 64]) for at in range(0, ROWS, 64)]
        ours = rows_per_second(lambda filler=filler, records=records: filler.count(records).trained, seconds)
        rival = HashingVectorizer(ngram_range=tuple(ngrams), n_features=BUCKETS, norm=None, alternate_sign=False)
        theirs = rows_per_second(lambda rival=rival: rival.transform(given).shape[0], seconds)
        figure = {
            "bench": f"{name} of JSON", "ours": round(ours * WORDS), "rival": round(theirs * WORDS),
            "ratio": round(ours / theirs, 2), "bar": BAR, "ns_a_word": round(1e9 / ours / WORDS, 1),
            "gb_per_second": round(ours * WORDS * size / 1e9, 3), "unit": "words/s",
        }  # fmt: skip
        print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
