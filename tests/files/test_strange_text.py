"""Text files as other programs write them are read, and what was guessed is shown."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import logging
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

from streamtrain import Job
from streamtrain.errors import UserMistake
from streamtrain.files import source
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection, iso_ms
from streamtrain.files.file_records import FileRecords
from streamtrain.files.reading import count_rows, read_blocks, read_rows

ROWS = [
    {"größe": f"{at / 7:.3f}", "word": ["a b", 'c "d"', "e;f,g|h\ti", "zwei\nZeilen"][at % 4], "y": str(at % 2)}
    for at in range(60)
]
PLAIN = [{**row, "word": "abc"[at % 3]} for at, row in enumerate(ROWS)]
UTF8 = ("utf-8", "utf-8-sig", "utf-16")


def as_csv(rows: list[dict[str, str]], delimiter: str, end: str = "\r\n") -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator=end)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def packed(raw: bytes, suffix: str) -> bytes:
    return {"": raw, ".gz": gzip.compress(raw), ".zst": pyarrow.compress(raw, "zstd", asbytes=True)}[suffix]


def read(path: Path) -> list[dict[str, Any]]:
    rows = list(read_rows(str(path)))
    assert count_rows(str(path)) == len(rows)
    return rows


def test_each_delimiter_encoding_and_compression(tmp_path: Path) -> None:
    """Quoted cells hold every delimiter and line breaks."""
    failed = []
    for delimiter, encoding, suffix, name in itertools.product(",;\t|", UTF8, ("", ".gz", ".zst"), ("x.csv", "x.tsv")):
        path = tmp_path / (name + suffix)
        path.write_bytes(packed(as_csv(ROWS, delimiter).encode(encoding), suffix))
        if read(path) != ROWS:
            failed.append((delimiter, encoding, suffix, name))
    assert failed == []


def test_json_lines_and_arrays(tmp_path: Path) -> None:
    """Also an array whose elements are cut by the end of a piece, and what an array must not be."""
    rows = [{"größe": at / 7, "word": "x" * (at * 97 % 70_000), "deep": {"y": [at]}} for at in range(60)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    texts = [
        lines,
        json.dumps(rows),
        json.dumps(rows, indent=2, ensure_ascii=False),
        f"\n [ {lines.strip().replace(chr(10), ' , ')} ]\n",
    ]
    for text, encoding, suffix in itertools.product(texts, UTF8, ("", ".gz")):
        path = tmp_path / f"x.json{suffix}"
        path.write_bytes(packed(text.encode(encoding), suffix))
        assert read(path) == rows
    for wrong, message in [
        ("[{}, 3]", "expected a JSON object"),
        ("[{} {}]", "element 2"),
        ("[{},", "element 2"),
        ("[{}, {x}]", "element 2"),
    ]:
        (tmp_path / "x.json").write_text(wrong)
        with pytest.raises(UserMistake, match=message):
            list(read_rows(str(tmp_path / "x.json")))
    (tmp_path / "x.json").write_text(" [ ] ")
    assert read(tmp_path / "x.json") == []


def test_latin_1_is_guessed_and_shown_and_single_broken_cells_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "x.csv"
    with caplog.at_level(logging.INFO, "streamtrain"):
        path.write_bytes(as_csv(PLAIN, ";").encode("latin-1"))
        assert read(path) == PLAIN
    assert "read in the encoding cp1252" in caplog.text and "separated by ';'" in caplog.text
    caplog.clear()
    path.write_bytes("größe,ÄÖÜ\n1,ä\n".encode() + b"2,\xff\n")
    with pytest.raises(UserMistake, match="iconv"):
        list(read_rows(str(path)))
    assert "cp1252" not in caplog.text


def test_excels_first_line_names_the_delimiter(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("sep=;\r\n" + as_csv(PLAIN, ";"))
    assert read(path) == PLAIN
    path.write_text("sep=,y\n1,2\n3,4\n")
    assert next(iter(read_rows(str(path)))) != {}


@pytest.mark.parametrize("seed", range(5))
def test_commas_stay_delimiters_where_others_are_in_texts(tmp_path: Path, seed: int) -> None:
    """Checks what must not change: files of one column, and comma files with semicolons and bars in cells."""
    drawn, path = random.Random(seed), tmp_path / "x.csv"
    words = ["a;b", "c|d", "e", "f;g;h", "i|", ";"]
    rows = [{"one": drawn.choice(words), "two": drawn.choice(words), "y": "1"} for _ in range(40)]
    path.write_text(as_csv(rows, ",", "\n"))
    assert read(path) == rows
    alone = [{"one": drawn.choice(["a;b", "e f", "7"])} for _ in range(40)]
    path.write_text(as_csv(alone, ",", "\n"))
    assert read(path) == alone


@pytest.mark.parametrize("delimiter", [",", ";", "|"])
def test_spaces_behind_delimiters(tmp_path: Path, delimiter: str, caplog: pytest.LogCaptureFixture) -> None:
    """They are none of the cells where every row has them, and stay where one has not; as pandas reads it."""
    pandas = pytest.importorskip("pandas")
    rows = [[f"{at}", f"b {at % 3}", f'"c{delimiter} {at}"', f"{at / 7:.3f}" if at % 5 else ""] for at in range(60)]
    for names in (f"a{delimiter} b{delimiter} c{delimiter} d", delimiter.join("abcd")):
        caplog.clear()
        text = "\n".join([names, *((delimiter + " " * (1 + at % 2)).join(row) for at, row in enumerate(rows))])
        path = tmp_path / f"{len(names)}.csv"
        path.write_text(text)
        with caplog.at_level(logging.INFO, "streamtrain"):
            found = list(read_rows(str(path)))
            assert list(read_rows(str(path))) == found
        assert caplog.text.count("a space stands behind each") == 1
        assert caplog.text.count("cells are separated by") == (delimiter != ",")
        read_by_pandas = pandas.read_csv(path, sep=delimiter, skipinitialspace=True, dtype=str)
        assert found == read_by_pandas.astype(object).where(read_by_pandas.notna(), None).to_dict("records")
        job = Job.from_tables({"columns": {"b": {"kind": "category", "buckets": 9}, "d": {"missing": -1},
                                           "a": {"role": "label"}}, "model": {"loss": "mean_squared_error"}})
        by_native = job.plan().joined(job.plan().batches(FileRecords(job, [str(path)])))
        by_rows = job.plan().transform([ColumnSelection(job.schema).row(row) for row in found])
        assert all(np.array_equal(by_native[name], by_rows[name]) for name in "abd")
        plain = text.replace(f'"c{delimiter} ', "c ").replace('"', "")
        path.write_text(plain.replace(f"{delimiter} b 1", f"{delimiter}b 1", 1))
        caplog.clear()
        with caplog.at_level(logging.INFO, "streamtrain"):
            assert [cell for row in read_rows(str(path)) for cell in row.values()][1] == " b 0"
        assert "a space stands" not in caplog.text


def test_a_compressed_file_that_is_cut_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(as_csv(ROWS * 50, ",").encode())[:-30])
    with pytest.raises(UserMistake, match="cannot be read"):
        list(read_rows(str(path)))


@pytest.mark.parametrize("seed", range(10))
def test_comments_of_svmlight_are_no_rows(tmp_path: Path, seed: int) -> None:
    drawn, path = random.Random(seed), tmp_path / "rows.svm"
    rows, lines = [], ["# Generated by dump_svmlight_file from scikit-learn 1.5", "#", "# Indices are zero-based"]
    for number in range(50):
        rows.append({"label": str(number % 2), "features": [[number, 1.5], [number + 1, 2.0]]})
        text = f"{number % 2} qid:3 {number}:1.5 {number + 1}:2"
        lines.append(text + drawn.choice(("", " # id 7:1", "#x", " #", "\r")))
        lines += drawn.choice(([], ["# 1 2:3"], ["  # between"], ["\t#"], [""]))
    path.write_bytes(b"\xef\xbb\xbf" * (seed % 2) + "\n".join(lines).encode())
    assert list(read_rows(str(path))) == rows and count_rows(str(path)) == len(rows)
    path = tmp_path / "rows.vw"
    path.write_text("1 | a\n# | a\n")  # there it is a label
    assert count_rows(str(path)) == 2


@pytest.mark.parametrize("end", ["jsonl", "svm", "vw"])
def test_a_mark_before_any_line_is_no_part_of_it(tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"jsonl": '{"x": 1}', "svm": "1 2:3", "vw": "1 | a"}[end]
    path = tmp_path / f"rows.{end}"
    for piece in (1, 7, 1 << 20):
        monkeypatch.setattr(source, "_PIECE_BYTES", piece)
        path.write_text(f"\ufeff{line}\n{line}\n\ufeff{line}\n\ufeff\n\ufeff{line}", encoding="utf-8")
        found = list(read_rows(str(path)))
        assert len(found) == 4 == count_rows(str(path)) and all(row == found[0] for row in found)
        path.write_text('{"x": "a\ufeff"}\n' if end == "jsonl" else line + "\n", encoding="utf-8")
        assert end != "jsonl" or list(read_rows(str(path))) == [{"x": "a\ufeff"}]


NOON_MS = 1_719_835_200_000  # 2024-07-01 12:00:00 UTC
ZONES = {"": 0, "Z": 0, " Z": 0, " UTC": 0, "UTC": 0, " utc": 0, " GMT": 0, "+00": 0, " +00": 0, "+0000": 0,
         " +00:00": 0, "-07": 7, " -0700": 7, "-07:00": 7, "+02": -2, " +02:00": -2}  # fmt: skip


def test_times_as_databases_write_them(tmp_path: Path) -> None:
    columns = {"at": {"role": "event_time", "missing": 0}, "x": {}, "y": {"role": "label"}}
    jobs = [Job.from_tables({"columns": {**columns, **more}, "model": {"loss": "mean_squared_error"}})
            for more in ({}, {"k": {"role": "key"}})]  # fmt: skip
    times, expected = ["", "NULL"], [None, None]
    for between in "T ":
        for fraction, ms in (("", 0), (".5", 500), (".123456", 123), (".123456789", 123)):
            times += [f"2024-07-01{between}12:00:00{fraction}{zone}" for zone in ZONES]
            expected += [NOON_MS + hours * 3_600_000 + ms for hours in ZONES.values()]
    for count in (len(times), 3):
        path = tmp_path / f"{count}.csv"
        path.write_text("at,x,y\n" + "".join(f"{time},1,0\n\n" for time in times[:count]))
        for job in jobs:
            blocks = read_blocks([str(path)], ColumnSelection(job.schema), Size(7))
            found = [json.loads(record)["at"] for block in blocks for record in job.plan().records(block)]
            assert [cell for each in found for cell in (each if isinstance(each, list) else [each])] == expected[:count]
            again = read_blocks([str(path)], ColumnSelection(job.schema), Size(7))
            numbers = [number for block in again for number in block.lines]
            assert job is jobs[1] or count == 3 or numbers == list(range(2, 2 + 2 * count, 2))
    for text in ("2024-07-01 UTC", "12 UTC", "UTC", "2024-07-01 12:00:00 CET", "2024-07-01 12:00:00  UTC", "a:00 UTC"):
        assert iso_ms(text) is None, text
    path.write_text("at,x,y\n2024-07-01 12:00:00 UTC,1,0\n\n2024-07-01 12:00:00 UTC,1,0,3\n")
    with pytest.raises(UserMistake, match=r"3.csv:4: expected 3 cells, got 4"):
        list(read_blocks([str(path)], ColumnSelection(jobs[0].schema), Size(9)))
