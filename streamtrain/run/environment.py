"""What libraries read from the environment as they are imported; what the user has set there stays."""

from __future__ import annotations

ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",  # NumPy's pool of threads; what works in parallel here are workers
    "PYDANTIC_DISABLE_PLUGINS": "__all__",  # it looks through every package there is, for 30 ms
}
