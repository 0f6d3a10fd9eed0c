"""Variables of the environment that libraries read at import. What the user has set stays."""

from __future__ import annotations

ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",  # NumPy's pool of threads; what works in parallel here are workers
    "PYDANTIC_DISABLE_PLUGINS": "__all__",  # it looks through every package there is, for 30 ms
}
