"""streamtrain's errors: each says where, what was expected, what was found and what next, and carries an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamtrain import exits

OR_FRESH = "or begin anew with --fresh, which loses what the model has learned"  # the last of the next steps


class StreamtrainError(Exception):
    """Base of every error raised on purpose. `exit_code` is what the command line ends with."""

    exit_code = exits.FAILED


class CheckFailed(StreamtrainError):
    """A check found a difference, or a ceiling (dead letters, deaths of workers) was passed."""

    exit_code = exits.FAILED


class UserMistake(StreamtrainError):
    """The job file, a flag or a call is wrong, or a topic does not fit the job; nothing was changed."""

    exit_code = exits.MISTAKE


class KafkaUnreachable(StreamtrainError):
    """No broker answered in time. Asking again may mend it."""

    exit_code = exits.UNREACHABLE


class KafkaSettling(KafkaUnreachable):
    """A broker answered, but not what was asked: it is starting, or not settled yet on who leads."""


class TooManyOpenFiles(KafkaUnreachable):
    """This process may open no more files, a connection to Kafka neither. A trainer does not wait for that to pass."""

    exit_code = exits.FAILED


class KafkaDenied(UserMistake):
    """Kafka does not let this user in or do that: authentication, TLS, authorisation."""


class KafkaBroken(StreamtrainError):
    """Kafka's client, or what it was doing, is of no use any more; one made anew may be."""

    exit_code = exits.FAILED


class Replaced(StreamtrainError):
    """A newer run of the same job has taken over; this one is fenced and must not go on."""

    exit_code = exits.REPLACED


class SnapshotError(StreamtrainError):
    """A snapshot is missing a chunk, fails its digest, or does not fit the model."""

    exit_code = exits.FAILED


class RecordError(StreamtrainError):
    """A record or a request row could not be decoded."""

    exit_code = exits.FAILED


@contextmanager
def writing(folder: Path, content: str) -> Iterator[None]:
    """Raises UserMistake where what is done within cannot write to the folder."""
    try:
        yield
    except OSError as error:
        what = f"{folder}: expected a folder to write {content} to, got: {error}"
        raise UserMistake(f"{what}; make room or mend its rights, or choose another folder") from error
