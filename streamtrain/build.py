"""The identity of this build: its version and the digest of the sources that decide the bits of a result.

Replay is bit for bit on the same build.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from streamtrain import __version__, _native

_PACKAGES = ("streamtrain.compute", "streamtrain.columns")  # the order of operations; what becomes of a column


@cache
def build_digest() -> str:
    """`<version>+<first 16 hex digits of a SHA-256>` over the native sources and the Python that decides bits.

    The native part was taken when the extension was compiled, the Python part is of the files this process imports:
    in an editable install they change without a build, and what matters is what runs.
    """
    digest = hashlib.sha256(_native.SOURCE_DIGEST.encode())
    for package in _PACKAGES:
        spec = find_spec(package)
        assert spec is not None and spec.submodule_search_locations is not None
        folder = Path(next(iter(spec.submodule_search_locations)))
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{package}/{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()[:16]}"
