"""A spawned process from its first line of standard input, one of JSON with its name and plain settings, to its end."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from typing import NoReturn

from streamtrain import exits, failpoints
from streamtrain.errors import KafkaBroken, StreamtrainError
from streamtrain.log import configure_logging, get_logger
from streamtrain.run import roles
from streamtrain.run.process_settings import die_with_parent, show_as

log = get_logger("streamtrain.run.__main__")


def run_to_end(arena: int | None = None) -> NoReturn:
    """Runs the process and ends with its exit code. `arena` is the arena's descriptor where it is another here."""
    code = _run(arena)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)  # a thread left behind in librdkafka, or a client that does not end, would hold an ordinary exit up


def _run(arena: int | None) -> int:
    for ignored in (signal.SIGINT, signal.SIGTERM):  # the supervisor drains its children through a word of the arena
        signal.signal(ignored, signal.SIG_IGN)
    document = json.loads(sys.stdin.readline())
    die_with_parent(document["parent"])
    show_as(document["label"])
    configure_logging(process=document["label"], **document["logging"])
    failpoints.arm(document["failpoints"])
    config = document["config"] if arena is None else {**document["config"], "arena": arena}
    process = roles.REGISTRY.get(document["process"])
    code = exits.UNEXPECTED
    try:
        return int(process.run(process.Config(**config)))
    except KafkaBroken as error:
        why = str(error)
        log.error(why)
    except StreamtrainError as error:
        why, code = str(error), error.exit_code
        log.error(why)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        log.exception("unexpected error")
    if document["last_words"]:
        print(why)
    return code
