"""Entry of a spawned process: its name and plain settings come as one line of JSON on standard input."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import sys

from streamtrain import failpoints
from streamtrain.errors import KafkaBroken, StreamtrainError
from streamtrain.log import configure_logging, get_logger
from streamtrain.run import exits, roles

_PR_SET_PDEATHSIG = 1
log = get_logger(__name__)


def _die_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call
        os._exit(1)


def main() -> int:
    for ignored in (signal.SIGINT, signal.SIGTERM):  # the supervisor drains its children through a word of the arena
        signal.signal(ignored, signal.SIG_IGN)
    document = json.loads(sys.stdin.readline())
    _die_with_parent(document["parent"])
    configure_logging(process=document["label"], **document["logging"])
    failpoints.arm(document["failpoints"])
    process = roles.REGISTRY.get(document["process"])
    code = exits.UNEXPECTED
    try:
        return int(process.run(process.Config(**document["config"])))
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


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)  # a thread left behind in librdkafka, or a client that does not end, would hold an ordinary exit up
