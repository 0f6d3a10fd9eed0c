"""Shows an error to the user: one message on stderr; a JSON line with --json; the traceback with -vv."""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise

from streamtrain.errors import StreamtrainError


def report_failure(error: StreamtrainError, arguments: Sequence[str]) -> None:
    """Writes `error` to stderr. `arguments` tell the form, for an error may come before they are parsed."""
    if sum(argument.count("v") for argument in arguments if re.fullmatch("-v+", argument)) >= 2:
        traceback.print_exception(error)
    as_json = "--json" in arguments or "--log-format=json" in arguments
    if as_json or any(pair == ("--log-format", "json") for pair in pairwise(arguments)):
        line = {"level": "error", "message": str(error), "error": type(error).__name__, "exit_code": error.exit_code}
        mistakes = getattr(error, "mistakes", None)
        if mistakes is not None:
            line["mistakes"] = [mistake.as_dict() for mistake in mistakes]
        print(json.dumps(line, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"error: {error}", file=sys.stderr)
