"""Lines of VW's text and of libsvm decoded into slots by one thread: rcv1, against scikit-learn's reader and VW itself.

Prints one JSON line per figure, in features a second of the process's CPU time, which a busy machine does not falsify.
scikit-learn reads the same pairs as a libsvm file; VW parses, with --noop, the same lines.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from sklearn.datasets import load_svmlight_file
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.schema import Schema

SMOKE = ["--seconds", "1"]
BAR, VW_BAR = 10.0, 2.0
LINES, SLOT_ROWS = 100, 1000
DATA = Path(__file__).parents[3] / "shared/data/rcv1/rcv1_small.dat"
SCHEMA = Schema.from_columns(
    {
        "wide": {"kind": "sparse", "buckets": 1 << 18, "most": 4096},
        "late": {"role": "label", "classes": ["-1", "1"]},
    },
    "binary_cross_entropy",
)


def ours(form: str, data: bytes) -> Callable[[], int]:
    filler = _native.BatchFiller(form, RowSlot(SCHEMA, SLOT_ROWS).plan)
    lines = data.splitlines(keepends=True)
    records = [b"".join(lines[at : at + LINES]) for at in range(0, len(lines), LINES)]
    features = data.count(b":")

    def call() -> int:
        assert filler.count(records).trained == len(lines)
        return features

    return call


def scikit(path: Path, features: int) -> Callable[[], int]:
    def call() -> int:
        table, _ = load_svmlight_file(str(path))
        assert table.nnz == features
        return features

    return call


def vowpal(path: Path, features: int) -> Callable[[], int]:
    import vowpalwabbit

    def call() -> int:
        workspace = vowpalwabbit.Workspace(f"--noop --quiet -b 18 -d {path}")
        workspace.run_parser()
        workspace.finish()
        return features

    return call


def per_second(call: Callable[[], int], seconds: float) -> float:
    """The best of five windows."""
    call()
    best = 0.0
    for _ in range(5):
        done, started = 0, time.process_time()
        while (spent := time.process_time() - started) < seconds / 5:
            done += call()
        best = max(best, done / spent)
    return best


def figure(name: str, mine: float, rival: float, bar: float, feature_bytes: float) -> dict[str, Any]:
    return {
        "bench": name, "ours": round(mine), "rival": round(rival), "ratio": round(mine / rival, 2), "bar": bar,
        "ns_a_feature": round(1e9 / mine, 1), "gb_per_second": round(mine * feature_bytes / 1e9, 3),
        "unit": "features/s",
    }  # fmt: skip


def figures(seconds: float) -> Iterator[dict[str, Any]]:
    if not DATA.exists():
        yield {"bench": "sparse text", "skipped": f"no {DATA}"}
        return
    lines = DATA.read_bytes() * 4  # what a call costs beside its lines counts for less
    pairs = lines.replace(b"|f ", b"")
    features = lines.count(b":")
    with tempfile.TemporaryDirectory() as folder:
        path, vw_path = Path(folder) / "rcv1.libsvm", Path(folder) / "rcv1.vw"
        path.write_bytes(pairs)
        vw_path.write_bytes(lines)
        rival = per_second(scikit(path, features), seconds / 4)
        for form, data in (("vw", lines), ("libsvm", pairs)):
            mine = per_second(ours(form, data), seconds / 4)
            yield figure(f"{form}, rcv1 / load_svmlight_file", mine, rival, BAR, len(data) / features)
            if form == "vw" and importlib.util.find_spec("vowpalwabbit") is not None:
                theirs = per_second(vowpal(vw_path, features), seconds / 4)
                yield figure("the same / vw --noop", mine, theirs, VW_BAR, len(data) / features)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12.0, help="in all")
    for each in figures(parser.parse_args().seconds):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
