"""Files that are trained, each by its digest and its number of rows: they are what they hold, not their names."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

from streamtrain.errors import UserMistake
from streamtrain.files.reading import count_rows
from streamtrain.files.source import STANDARD_INPUT


@dataclass(frozen=True)
class FoundFile:
    """A file as it was looked at."""

    path: str
    digest: str  # SHA-256, hex
    rows: int
    stamp: tuple[int, int]  # its bytes, and when it was written last, in ns

    @property
    def name(self) -> str:
        """Text that can be published, whatever bytes the file system holds."""
        return os.fsencode(Path(self.path).name).decode("utf-8", "replace")

    def check_unchanged(self) -> None:
        """UserMistake where the file is another by now."""
        if stamp_of(self.path) != self.stamp:
            raise UserMistake(
                f"{self.path}: expected the file with the digest {self.digest}, got one that was written since it was "
                "looked at; bring that back, and start again"
            )


def found_files(given: Iterable[str], what: str = "--files") -> list[FoundFile]:
    """The files of paths and patterns, those of a pattern sorted; one that is named twice is there twice.

    Each is read once as a whole. UserMistake, which names the setting `what`, where there is none, or one cannot be
    read again.
    """
    looked: dict[str, FoundFile] = {}
    found = []
    for path in _paths(given, what):
        if path not in looked:
            looked[path] = _look(path)
        found.append(looked[path])
    return found


def stamp_of(path: str) -> tuple[int, int]:
    try:
        state = os.stat(path)
    except OSError as error:
        raise UserMistake(f"{path}: cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(state.st_mode):
        raise UserMistake(f"{path}: expected a file, which can be read again, got none; use produce for what cannot")
    return state.st_size, state.st_mtime_ns


def _paths(given: Iterable[str], what: str) -> Iterator[str]:
    for path in given:
        if path == STANDARD_INPUT:
            raise UserMistake(f"{what}: expected files, which can be read again, got standard input; use produce")
        if not has_magic(path) or os.path.exists(path):
            yield path
            continue
        matching = sorted(glob(path, recursive=True))
        if not matching:
            raise UserMistake(f"{what}: expected files matching {path}, found none")
        yield from matching


def _look(path: str) -> FoundFile:
    stamp = stamp_of(path)
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserMistake(f"{path}: cannot be read: {error.strerror}") from error
    return FoundFile(path, digest, count_rows(path), stamp)
