"""Checks an installed streamtrain, from outside the checkout; prints the digest of its build, or what is wrong.

Without arguments: an installed wheel, which must be our package alone, whole and without sources. With
`--editable CHECKOUT DIGEST`: an editable install, which must be the checkout and the build of that digest.
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
SITE = Path(sys.prefix).resolve()


def imported_from_elsewhere(folder: Path, *modules: object) -> list[str]:
    found = [Path(str(module.__file__)) for module in modules]  # type: ignore[attr-defined]
    return [f"{path}: expected a file below {folder}" for path in found if not path.is_relative_to(folder)]


def problems_of_wheel() -> list[str]:
    modules = streamtrain, streamtrain._native, streamtrain.compute, streamtrain.topics
    problems = imported_from_elsewhere(SITE, *modules)
    if distribution.JAR_LIST.read_text().count("org.apache.kafka:") < 10:
        problems.append(f"{distribution.JAR_LIST}: expected Kafka's jars")
    installed = [str(path) for path in files("streamtrain") or []]
    problems += [f"streamtrain/{name}: not installed" for name in NEEDED if f"streamtrain/{name}" not in installed]
    problems += [f"{path}: a source is installed" for path in installed if path.endswith(SOURCES)]
    native = [path for path in installed if path.startswith("streamtrain/_native.") and path.endswith(".so")]
    problems += [] if len(native) == 1 else [f"streamtrain/_native.*.so: expected one, found {native}"]
    beside = {path.split("/")[0] for path in installed} - {"streamtrain", "streamtrain-0.1.0.dist-info", ".."}
    there = NOT_OURS & {path.name for path in Path(str(streamtrain.__file__)).parents[1].iterdir()}
    return problems + [f"{name}: installed beside the package" for name in sorted(beside | there)]


def problems_of_editable(checkout: str, digest: str) -> list[str]:
    problems = imported_from_elsewhere(Path(checkout).resolve(), streamtrain, streamtrain.compute, streamtrain.topics)
    if build_digest() != digest:
        problems.append(f"build digest: expected the wheel's, {digest}, found {build_digest()}")
    return problems


if __name__ == "__main__":
    problems = problems_of_editable(*sys.argv[2:]) if sys.argv[1:2] == ["--editable"] else problems_of_wheel()
    print("\n".join(problems or [build_digest()]))
    sys.exit(bool(problems))
