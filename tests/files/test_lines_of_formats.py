"""Files of VW's and libsvm's lines give a job what the same lines give it on a topic: by role and kind, by its bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamtrain import Job
from streamtrain.files.file_records import FileRecords

WIDE = {"kind": "sparse", "buckets": 1 << 22}
LABEL = {"y": {"role": "label", "missing": "skip"}}
WEIGHT = {"w": {"role": "weight", "missing": 1}}
VW = [b"1 2.5 'one|u age:3 likes |geo:2 x y:-1 |z q:0.1 12", b"0 |u b |u c:2", b"1 3 |z only", b"|geo 7", b"0 two|u"]
LIBSVM = [b"1 3:0.5 70000:2 # a comment", b"0 qid:2 4194303:1", b"1", b"0 0:1 0:2"]


def cells(job: Job, records: list[bytes]) -> dict[str, Any]:
    return {name: [np.asarray(part).tolist() for part in (found if isinstance(found, tuple) else [found])]
            for name, found in job.plan().decode(records).items()}  # fmt: skip


@pytest.mark.parametrize("columns", [
    {"user": {**WIDE, "namespaces": ["u", "geo"]}, "rest": WIDE, **WEIGHT, "id": {"role": "key", "path": "tag"}},
    {"user": {**WIDE, "namespaces": ["u"]}},
    {"features": WIDE, **WEIGHT},
], ids=len)  # fmt: skip
@pytest.mark.parametrize("bits", [18, 22, 3])
def test_vw(tmp_path: Path, columns: dict[str, Any], bits: int) -> None:
    check(tmp_path / "rows.vw", VW, {"format": "vw", "bits": bits}, {**columns, **LABEL})


def test_libsvm(tmp_path: Path) -> None:
    check(tmp_path / "rows.svm", LIBSVM, {"format": "libsvm"}, {"indexes": WIDE, **LABEL})


def check(path: Path, lines: list[bytes], records: dict[str, Any], columns: dict[str, Any]) -> None:
    job = Job.from_tables({"columns": columns, "records": records, "model": {"loss": "binary_cross_entropy"}})
    path.write_bytes(b"\n".join(lines))
    expected = cells(job, [b"\n".join(lines)])
    assert cells(job, list(FileRecords(job, [str(path)]))) == expected
    assert any(any(part[-1:]) for found in expected.values() for part in found)


def test_another_format_takes_them_by_role_too(tmp_path: Path) -> None:
    columns = {"other": {**WIDE, "missing": 0}, "features": WIDE, **LABEL, "n": {"missing": 0}}
    job = Job.from_tables({"columns": columns, "model": {"loss": "binary_cross_entropy"}})
    for end, line in (("vw", b"1 |a 5:2"), ("svm", b"1 5:2")):
        (tmp_path / f"rows.{end}").write_bytes(line)
        found = cells(job, list(FileRecords(job, [str(tmp_path / f"rows.{end}")])))
        assert found["y"] == [[1.0]] and found["features.scale"] == [[0, 1], [2.0]]
        assert found["other.scale"] == [[0, 0], []]
