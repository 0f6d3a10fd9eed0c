"""Exit codes of a run's processes that the supervisor answers with a new run (sysexits.h has the numbers)."""

from __future__ import annotations

UNEXPECTED = 70  # EX_SOFTWARE: an error nobody foresaw; worth another run, but not for ever
RUN_OVER = 75  # EX_TEMPFAIL: told to leave, or the coordinator is silent; a new run may follow
