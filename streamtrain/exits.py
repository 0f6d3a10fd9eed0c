"""Exit codes: what a command ends with, and a run's processes."""

from __future__ import annotations

DONE = 0
FAILED = 1
MISTAKE = 2
UNREACHABLE = 3
REPLACED = 4
NOT_REPLAYABLE = 5
INTERRUPTED = 130
OF_COMMANDS = {
    DONE: "done",
    FAILED: "a check failed or a ceiling was passed",
    MISTAKE: "the user's mistake, or Kafka does not let this user in",
    UNREACHABLE: "Kafka cannot be reached",
    REPLACED: "replaced by a newer run",
    NOT_REPLAYABLE: "records that replay needs were compacted away",
    INTERRUPTED: "stopped by Ctrl-C, or at once",
}
OF_ERRORS = (FAILED, MISTAKE, UNREACHABLE, REPLACED)  # a process that ends with one of them has said why

# of a run's processes, which the supervisor answers with a new run (sysexits.h has the numbers)
UNEXPECTED = 70  # EX_SOFTWARE: an error nobody foresaw; worth another run, but not for ever
RUN_OVER = 75  # EX_TEMPFAIL: told to leave, or the coordinator is silent; a new run may follow
