"""Structured logs on stderr, plain or as JSON lines; secrets in settings and texts are masked.

Importing it changes nothing; a process calls `configure_logging` once, at its start.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Mapping
from functools import cache
from typing import Any, TextIO

from streamtrain.errors import UserMistake

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("plain", "json")
MASK = "***"

SECRET_WORDS = "password|passphrase|secret|token|credentials?"
SECRET_NAME = re.compile(rf"({SECRET_WORDS}|key|key[._]pem)$|sasl.*jaas|oauthbearer[._]config", re.IGNORECASE)
# `sasl.password=x`, `"ssl.key.pem": "x"`, and all that follows a JAAS configuration's name on its line
SECRET_TEXT = re.compile(
    rf"""([\w.\-]*(?:{SECRET_WORDS}|[._]key|key[._]pem)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;}}]+)""", re.IGNORECASE
)
SECRET_LINE = re.compile(r"""(sasl\S*jaas[\w.]*["']?\s*[=:]\s*).*""", re.IGNORECASE)
REPEAT_S = 10.0  # a warning that says the same again within this is counted, not shown
_DIGITS = re.compile(r"\d+")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Log:
    """A logger whose keywords become fields: `log.info("published", version=812)`."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, message: str, /, **fields: object) -> None:
        self._write(logging.DEBUG, message, fields)

    def info(self, message: str, /, **fields: object) -> None:
        self._write(logging.INFO, message, fields)

    def warning(self, message: str, /, **fields: object) -> None:
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, /, **fields: object) -> None:
        self._write(logging.ERROR, message, fields)

    def exception(self, message: str, /, **fields: object) -> None:
        """`error` with the traceback of the exception being handled."""
        self._write(logging.ERROR, message, fields, sys.exc_info()[1])

    def _write(self, level: int, message: str, fields: dict[str, object], error: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", message, extra={"fields": fields}, exc_info=error, stacklevel=3)


def get_logger(name: str) -> Log:
    """The logger of a module; give it `__name__`."""
    return Log(name)


class Reminder:
    """A reminder for a condition that lasts: due at once, then again every `every_s` seconds.

    Somebody who reads the log later sees it too.
    """

    def __init__(self, every_s: float = REPEAT_S) -> None:
        self._every_s, self._said_at = every_s, float("-inf")

    def due(self) -> bool:
        """Returns True if it is time to log, and counts that as logged: call it only where you then log."""
        if time.monotonic() - self._said_at < self._every_s:
            return False
        self._said_at = time.monotonic()
        return True

    def anew(self) -> None:
        """It is something else now: due at once."""
        self._said_at = float("-inf")


@cache
def librdkafka_logger() -> logging.Logger:
    """Returns the logger of librdkafka's clients, without repeats: these log a reconnect hundreds of times a second."""
    logger = logging.getLogger("streamtrain.kafka")
    logger.addFilter(Repeats())
    return logger


@cache
def logger_without_repeats(name: str) -> Log:
    """Returns a logger as get_logger, for warnings of repeated attempts; no other code may use the name."""
    logging.getLogger(name).addFilter(Repeats())
    return Log(name)


def configure_logging(
    level: str = "info", format: str = "plain", process: str | None = None, stream: TextIO | None = None
) -> None:
    """Send this process's logs to stderr. `process` ("worker-1") stands in each line instead of the module's name.

    Other libraries are heard from WARNING up. Raises UserMistake for an unknown level or format.
    """
    if level not in LEVELS:
        raise UserMistake(f"log level: expected one of {', '.join(LEVELS)}, got {level!r}")
    if format not in FORMATS:
        raise UserMistake(f"--log-format: expected one of {', '.join(FORMATS)}, got {format!r}")
    handler = logging.StreamHandler(stream if stream is not None else _Stderr())
    handler.setFormatter(JsonFormatter(process) if format == "json" else PlainFormatter(process))
    handler.addFilter(Repeats())
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old.formatter, PlainFormatter | JsonFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("streamtrain").setLevel(level.upper())
    logging.captureWarnings(True)


class _Stderr:
    """A stream to the sys.stderr of the time of each write: a live panel, or a test, may have replaced it."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


class Repeats(logging.Filter):
    """Lets a warning of one wording (numbers aside) through once in REPEAT_S; the next says how many were held back."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING or record.exc_info:
            return True
        key = (record.name, _DIGITS.sub("0", record.getMessage())[:200])
        last_logged_s, suppressed_count = self._seen.get(key, (float("-inf"), 0))
        if record.created - last_logged_s < REPEAT_S:
            self._seen[key] = (last_logged_s, suppressed_count + 1)
            return False
        if len(self._seen) > 1000:
            self._seen.clear()
        self._seen[key] = (record.created, 0)
        if suppressed_count:
            record.__dict__.setdefault("fields", {})["repeated"] = suppressed_count
        return True


class PlainFormatter(logging.Formatter):
    """`14:02:11 INFO ingest  message key=value`; a line break in a text is indented, other control bytes are shown."""

    def __init__(self, process: str | None = None) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        where = self._process or record.name.rpartition(".")[2]
        fields = " ".join(f"{name}={_plain(value)}" for name, value in masked(_fields(record)).items())
        text = " ".join(part for part in (mask_text(record.getMessage()), fields) if part)
        line = f"{clock} {record.levelname} {where}  {text}"
        error = _error(record)
        line = f"{line}\n{error}" if error else line
        return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", line).replace("\n", "\n    ")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, process, logger, message, the fields, error."""

    def __init__(self, process: str | None = None) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{clock}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "process": self._process or record.processName,
            "logger": record.name,
            "message": mask_text(record.getMessage()),
        }
        if error := _error(record):
            line["error"] = error
        for name, value in masked(_fields(record)).items():
            line[f"{name}_" if name in line else name] = value
        return json.dumps(line, default=str, ensure_ascii=False)


def is_secret(name: str) -> bool:
    """Returns True if a setting of this name holds something that must not be shown."""
    return SECRET_NAME.search(name) is not None


def masked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the values of secret ones replaced, in nested tables and lists and inside texts too."""
    return {name: MASK if is_secret(str(name)) else _masked_value(value) for name, value in settings.items()}


def mask_text(text: str) -> str:
    """The text with what follows `password=` and the like replaced."""
    return SECRET_TEXT.sub(rf"\1{MASK}", SECRET_LINE.sub(rf"\1{MASK}", text))


def _masked_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return masked(value)
    if isinstance(value, list | tuple):
        return [_masked_value(item) for item in value]
    return mask_text(value) if isinstance(value, str) else value


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Returns the fields that Log's keywords or logging's own `extra` gave."""
    extra = {name: value for name, value in vars(record).items() if name not in STANDARD_FIELDS}
    given = extra.pop("fields", {})
    return {**extra, **given}


def _error(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    return mask_text("".join(traceback.format_exception(record.exc_info[1])).rstrip())


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) and re.search(r'[\s"=]|^$', text) else text
