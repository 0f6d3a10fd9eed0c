"""Kafka's classes as the JVM holds them once they are loaded (java(1), class-data sharing): loading is half of a start.

Made from what a node has loaded when it answers, and kept beside Kafka's jars. Without one a start is only slower.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from streamtrain.broker.distribution import ARCHIVES, Distribution

log = logging.getLogger(__name__)

KEPT = 3  # of 65 MB each: an environment has a Java of its own, and most come and go
DUMP_TIMEOUT_S = 60


def recording(distribution: Distribution, classes: Path) -> tuple[str, ...]:
    """The JVM's options that write the names of the classes it loads to `classes`, while there is no archive."""
    classes.unlink(missing_ok=True)
    if distribution.archive is None or distribution.archive.exists():
        return ()
    return (f"-XX:DumpLoadedClassList={classes}",)


def make_archive(distribution: Distribution, classes: Path) -> None:
    """Make the archive of the classes a node has named in `classes`, and remove that file; nothing where there is none.

    None is made where another start makes it, or where it cannot be written.
    """
    if distribution.archive is None or not classes.exists():
        return
    text = classes.read_text()
    classes.unlink()
    with contextlib.suppress(OSError, subprocess.SubprocessError), _alone(distribution.archive.parent) as alone:
        if alone and not distribution.archive.exists():
            log.info("keeping Kafka's classes for the next start, once")
            _dump(distribution, distribution.archive, text[: text.rfind("\n") + 1])  # the node is still writing


def _dump(distribution: Distribution, archive: Path, classes: str) -> None:
    """Write into a folder of our own, then rename: an archive is whole or absent."""
    with tempfile.TemporaryDirectory(prefix=".streamtrain-", dir=archive.parent) as scratch:
        names, draft = Path(scratch, "classes"), Path(scratch, archive.name)
        names.write_text(classes)
        jvm = ("-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={draft}", "-Xlog:disable")
        command = distribution.command("kafka.Kafka", jvm=("-Xmx512m", "-XX:-UsePerfData", *jvm))
        subprocess.run(command, cwd=scratch, capture_output=True, timeout=DUMP_TIMEOUT_S, check=True)
        draft.rename(archive)
    others = sorted(archive.parent.glob(ARCHIVES), key=lambda path: path.stat().st_mtime)
    for old in others[:-KEPT]:
        old.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    with (folder / ".streamtrain-lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
