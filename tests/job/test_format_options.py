"""A format's own settings, which its file declares: in [records], checked with their line, given to both halves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from looped import over

from streamtrain.checks.verify.terms import _format
from streamtrain.columns import formats
from streamtrain.errors import UserMistake
from streamtrain.job import Job, JobMistakes, settings_table
from tests.job.conftest import replacements

LINES = '''"""Rows of text between separators."""

from streamtrain.columns.formats.parsed import Pairs, Parsed
from streamtrain.compute.options import Whole, Word

HELP = "lines of cells"
OPTIONS = {
    "separator": Word(of=("comma", "tab"), default="comma", help="what stands between cells"),
    "skip_lines": Whole(least=0, most=9, default=0, help="lines before the first row"),
}
EXAMPLES = []
BETWEEN = {"comma": ",", "tab": "\\\\t"}


def encode_rows(schema, rows, separator, skip_lines):
    return "\\\\n".join(BETWEEN[separator].join(map(str, row.values())) for row in rows).encode()


def parse(record, separator, skip_lines):
    lines = record.decode().split("\\\\n")[skip_lines:]
    return Parsed([line.split(BETWEEN[separator]) for line in lines], many=True)
'''


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "lines.py").write_text(LINES.replace("\\\\", "\\"))
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    settings_table.cache_clear()
    yield
    settings_table.cache_clear()


def job(text: str, records: str) -> Job:
    assert 'format = "json"' in text
    return Job.parse(text.replace('format = "json"', records, 1), name="flights.toml")


@pytest.mark.usefixtures("lines")
def test_a_format_takes_the_settings_its_file_declares(job_text: str) -> None:
    made = job(job_text, 'format = "lines"\nseparator = "tab"')
    assert made.records.named == {"name": "lines", "separator": "tab", "skip_lines": 0}
    assert Job.from_effective(made.effective()).records.named == made.records.named
    assert _format(made.effective()) == made.records.named  # verify: what a manifest tells of the terms
    assert formats.parse(made.records.named, b"1\t2\n3\t4").rows == [["1", "2"], ["3", "4"]]
    assert formats.encode_rows(made.records.named, made.schema, [{"a": 1, "b": 2}]) == b"1\t2"
    rows = {each.path: each for each in settings_table()}
    assert rows["records.separator"].when == 'records.format="lines"' and rows["records.skip_lines"].default == "0"


ALLOWED = "format, where, missing_words, max_decoded_bytes, start, max_dead_letter_share"


@pytest.mark.usefixtures("lines")
@over(("_", "records", "message"), replacements("""
json -> format = "lines"; separator = "tob"
    separator: expected one of comma, tab, got "tob"; did you mean tab?
json -> format = "lines"; skip_lines = 10
    skip_lines: expected a whole number from 0 to 9, got 10
json -> format = "lines"; seperator = "tab"
    seperator: unknown setting of lines; allowed: $ALLOWED, separator, skip_lines; did you mean separator?
json -> format = "msgpack"; separator = "tab"
    separator: unknown setting; allowed: $ALLOWED
json -> format = "msgpack"; strt = "latest"
    strt: unknown setting; allowed: $ALLOWED; did you mean start?
""", ALLOWED=ALLOWED))  # fmt: skip
def test_its_mistakes_have_their_line(job_text: str, _: str, records: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        job(job_text, records.replace("; ", "\n"))
    assert [str(mistake) for mistake in caught.value.mistakes] == [f"flights.toml:11: records.{message}"]


@pytest.mark.usefixtures("lines")
def test_a_log_that_names_what_this_build_has_not_is_refused() -> None:
    assert formats.checked({"name": "lines"}) == {"name": "lines", "separator": "comma", "skip_lines": 0}
    assert formats.checked({"name": "msgpack"}) == {"name": "msgpack"}
    for wrong in ({"name": "lines", "skip_lines": -1}, {"name": "linse"}, {}):
        with pytest.raises(UserMistake, match=r"records\."):
            formats.checked(wrong)
    with pytest.raises(UserMistake, match=r"records\.separator: unknown setting of msgpack; it takes none$"):
        formats.checked({"name": "msgpack", "separator": "tab"})
