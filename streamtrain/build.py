"""What this build is: its version and the digest of the kernels it was made of.

Replay is bit for bit on the same build.
"""

from __future__ import annotations

import hashlib
from functools import cache

from streamtrain import __version__, _native


@cache
def build_digest() -> str:
    """`<version>+<first 16 hex digits of the kernels' SHA-256>`."""
    digest = hashlib.sha256()
    for path, text in sorted(_native.kernel_texts().items()):
        digest.update(f"{path}\0{text}\0".encode())
    return f"{__version__}+{digest.hexdigest()[:16]}"
