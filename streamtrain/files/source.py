"""A file, or standard input, as pieces of bytes; never as a whole. Compressed ones are decompressed, and text that is
not UTF-8 becomes UTF-8."""

from __future__ import annotations

import codecs
import gzip
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import BinaryIO, cast

from streamtrain.errors import UserMistake
from streamtrain.log import get_logger

log = get_logger(__name__)
STANDARD_INPUT = "-"
COMPRESSED = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}  # ends of names, and first bytes of such files
CONVERT = "convert it from its encoding, as `iconv -f latin1 -t utf-8` does"
_PIECE_BYTES = 1 << 20
_MOST_LINE_BYTES = 64 << 20
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at a text's begin
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@lru_cache(maxsize=256)
def report(text: str) -> None:
    """Logs how a file is read, once: a command that tries a job and each epoch read it again."""
    log.info(text)


class Source:
    """Bytes that are read once, in order. `name` is what mistakes call it."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.file, self.path = file, path
        self.is_live = path == STANDARD_INPUT
        self.name = "standard input" if self.is_live else path
        self._ahead = b""
        self._decoder: codecs.IncrementalDecoder | None = None  # of a text that is not UTF-8

    def read(self) -> bytes:
        """The next piece; empty at the end. Of a live one what there is, as soon as there is any."""
        if self._ahead:
            piece, self._ahead = self._ahead, b""
            return piece
        piece = self._bytes()
        while self._decoder is not None and piece:
            if text := self._decoder.decode(piece):
                return text.encode()
            piece = self._bytes()  # half a character
        return piece

    def _bytes(self) -> bytes:
        try:
            if self.is_live:
                return bytes(getattr(self.file, "read1", self.file.read)(_PIECE_BYTES))
            return self.file.read(_PIECE_BYTES)
        except (OSError, EOFError) as error:  # EOFError: a compressed file that is cut
            raise UserMistake(f"{self.name}: cannot be read: {getattr(error, 'strerror', '') or error}") from error

    def begin(self) -> bytes:
        """The first piece of a text, which read() gives again: UTF-8, without the mark that it may begin with."""
        self._ahead = self.read()
        while len(self._ahead) < len(_MARK) and (more := self.read_behind()):
            self._ahead += more
        if (encoding := _encoding_of(self._ahead)) is not None:
            log.warning(f"{self.name}: is not UTF-8; it is read in the encoding {encoding}")
            self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            self._ahead = self._decoder.decode(self._ahead).encode()
        self._ahead = self._ahead.removeprefix(_MARK)
        return self._ahead

    def read_behind(self) -> bytes:
        ahead, self._ahead = self._ahead, b""
        more = self.read()
        self._ahead = ahead
        return more

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Each line that holds something, without its end, and its number from 1; without the mark that the first line
        of each has where files were put together."""
        number, rest = 0, b""
        while piece := self.read():
            *whole, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
            for line in whole:
                number += 1
                if (line := line.removeprefix(_MARK)).strip():
                    yield number, line
            if len(rest) > _MOST_LINE_BYTES:
                raise too_long(f"{self.name}:{number + 1}")
        if (rest := rest.removeprefix(_MARK)).strip():
            yield number + 1, rest

    def text(self, line: bytes, number: int) -> str:
        """A line's text. UserMistake for what is not UTF-8."""
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise UserMistake(f"{self.name}:{number}: {not_utf8(error)}") from error


def not_utf8(error: UnicodeDecodeError) -> str:
    """Returns the message for a text that is not UTF-8."""
    return f"expected UTF-8 text: {error}; {CONVERT}"


def _encoding_of(text: bytes) -> str | None:
    """Returns the encoding of a text's begin where it is not UTF-8: UTF-16 by its mark; else Windows' Latin-1, where
    most characters beyond ASCII are not UTF-8."""
    if text.startswith(_UTF_16_MARKS):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(text)
    except UnicodeDecodeError:
        characters = text.decode(errors="replace")
        broken = characters.count("\ufffd")
        beyond = sum(character > "\x7f" for character in characters)
        return "cp1252" if 2 * broken > beyond and "\0" not in characters else None
    return None


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
            file: BinaryIO = stack.enter_context(open(path, "rb"))
            first = file.read(4)
            file.seek(0)
        except OSError as error:
            raise UserMistake(f"{path}: cannot be read: {error.strerror}") from error
        if first.startswith(COMPRESSED[".gz"]):
            file = cast("BinaryIO", stack.enter_context(gzip.open(path, "rb")))
        elif first.startswith(COMPRESSED[".zst"]):
            file = stack.enter_context(_zstandard(path))
        yield Source(file, path)


def _zstandard(path: str) -> BinaryIO:
    try:
        import pyarrow
    except ImportError as error:
        raise UserMistake(
            f"{path}: a file compressed by zstd needs pyarrow: pip install 'streamtrain[data]'"
        ) from error
    stream: BinaryIO = pyarrow.input_stream(path, compression="zstd")
    return stream
