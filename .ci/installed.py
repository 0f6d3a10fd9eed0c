"""What an installation from the source distribution holds: our package alone, whole, and the build of the checkout
whose digest is given. Run it outside the checkout with `python -I`.
"""

from __future__ import annotations

import sys
from importlib.metadata import files
from pathlib import Path

import streamtrain
import streamtrain._native
import streamtrain.compute
import streamtrain.topics
from streamtrain.broker import distribution
from streamtrain.build import build_digest

NEEDED = ("py.typed", "_native.pyi", "broker/kafka_jars.txt", "compute/__init__.py", "topics/snapshots.py")
SOURCES = (".cpp", ".txt.in", "CMakeLists.txt")
NOT_OURS = {"compute", "topics", "native", "tests"}


def problems(checkout: str) -> list[str]:
    """Each thing that is not as expected."""
    found, site = [], Path(sys.prefix).resolve()
    for module in (streamtrain, streamtrain._native, streamtrain.compute, streamtrain.topics):
        if not Path(str(module.__file__)).resolve().is_relative_to(site):
            found.append(f"{module.__name__}: expected below {site}, found {module.__file__}")
    if build_digest() != checkout:
        found.append(f"digest of the build: expected the checkout's, {checkout}, found {build_digest()}")
    if distribution.JAR_LIST.read_text().count("org.apache.kafka:") < 10:
        found.append(f"{distribution.JAR_LIST}: expected Kafka's jars")
    installed = [str(path) for path in files("streamtrain") or []]
    found += [f"streamtrain/{name}: not installed" for name in NEEDED if f"streamtrain/{name}" not in installed]
    found += [f"{path}: a source is installed" for path in installed if path.endswith(SOURCES)]
    native = [path for path in installed if path.startswith("streamtrain/_native.") and path.endswith(".so")]
    found += [] if len(native) == 1 else [f"streamtrain/_native.*.so: expected one, found {native}"]
    beside = {path.split("/")[0] for path in installed} - {"streamtrain", "streamtrain-0.1.0.dist-info", ".."}
    there = NOT_OURS & {path.name for path in Path(str(streamtrain.__file__)).parents[1].iterdir()}
    found += [f"{name}: installed beside the package" for name in sorted(beside | there)]
    return found


if __name__ == "__main__":
    told = problems(sys.argv[1])
    print("\n".join(told))
    sys.exit(bool(told))
