"""A file, or standard input, as pieces of bytes; never as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from streamtrain.errors import UserMistake

STANDARD_INPUT = "-"
_PIECE_BYTES = 1 << 20
_MOST_LINE_BYTES = 64 << 20
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at a text's begin


class Source:
    """Bytes that are read once, in order. `name` is what mistakes call it."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.file, self.path = file, path
        self.is_live = path == STANDARD_INPUT
        self.name = "standard input" if self.is_live else path
        self._ahead = b""

    def read(self) -> bytes:
        """The next piece; empty at the end. Of a live one what there is, as soon as there is any."""
        if self._ahead:
            piece, self._ahead = self._ahead, b""
            return piece
        try:
            if self.is_live:
                return bytes(getattr(self.file, "read1", self.file.read)(_PIECE_BYTES))
            return self.file.read(_PIECE_BYTES)
        except OSError as error:
            raise UserMistake(f"{self.name}: cannot be read: {error.strerror}") from error

    def begin(self) -> bytes:
        """The first piece, which read() gives again; without the mark that a text may begin with."""
        self._ahead = self.read()
        while len(self._ahead) < len(_MARK) and (more := self.read_behind()):
            self._ahead += more
        self._ahead = self._ahead.removeprefix(_MARK)
        return self._ahead

    def read_behind(self) -> bytes:
        ahead, self._ahead = self._ahead, b""
        more = self.read()
        self._ahead = ahead
        return more

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Each line that holds something, without its end, and its number from 1."""
        number, rest = 0, b""
        while piece := self.read():
            *whole, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
            for line in whole:
                number += 1
                if line.strip():
                    yield number, line
            if len(rest) > _MOST_LINE_BYTES:
                raise too_long(f"{self.name}:{number + 1}")
        if rest.strip():
            yield number + 1, rest

    def text(self, line: bytes, number: int) -> str:
        """A line's text. UserMistake for what is not UTF-8."""
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise UserMistake(f"{self.name}:{number}: expected UTF-8 text: {error}") from error


def too_long(where: str) -> UserMistake:
    return UserMistake(f"{where}: expected a line of at most {_MOST_LINE_BYTES >> 20} MiB, got a longer one")


def is_too_long(size: int) -> bool:
    return size > _MOST_LINE_BYTES


@contextmanager
def opened(path: str) -> Iterator[Source]:
    """A file by its path, or "-". UserMistake where it cannot be read."""
    if path == STANDARD_INPUT:
        yield Source(sys.stdin.buffer, path)
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(path, "rb"))
        except OSError as error:
            raise UserMistake(f"{path}: cannot be read: {error.strerror}") from error
        yield Source(file, path)
