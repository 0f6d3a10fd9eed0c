"""List, show, fetch or move published snapshots."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

import typer

from streamtrain.cli.console import table
from streamtrain.cli.output import age_text
from streamtrain.cli.progress import Progress
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.cli.snapshot_named import option, parse_version, snapshots_of
from streamtrain.columns.portable import safetensors_file
from streamtrain.errors import UserMistake
from streamtrain.failpoints import arm
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.moving.exporting import export
from streamtrain.moving.importing import Import
from streamtrain.moving.snapshot_file import SUFFIX, SnapshotFile
from streamtrain.topics.chunks import Located
from streamtrain.topics.manifest import POSITIONS, Imported, Manifest

ORDER = 100
app = typer.Typer(no_args_is_help=True, add_completion=False)

Named = Annotated[
    str | None, option("--snapshot", help="Its version, or the best one by early stopping; default: the newest.")
]


def _row(located: Located, best: int | None) -> dict[str, Any]:
    manifest = located.manifest
    return {
        "version": manifest.version,
        "digest": located.digest.hex(),
        "parameters_digest": manifest.parameters_digest,
        "offset": located.offset,
        "lineage": manifest.lineage,
        "parent": None if manifest.parent is None else manifest.parent.version,
        "run": manifest.run.number,
        "round": manifest.round,
        "rows_seen": manifest.rows_seen,
        "created_ms": manifest.created_ms,
        "bytes": manifest.model.size + manifest.trainer.size,
        "untrained": manifest.untrained,
        "archived": manifest.archived,
        "best": manifest.version == best,
        "metrics": dict(manifest.metrics),
    }


@app.command("list")
@command
def list_(session: Session, job: JobFile) -> None:
    """List the snapshots the topic holds, oldest first."""
    with snapshots_of(session.job(job)) as topic:
        snapshots = topic.list()
        rows = [_row(located, snapshots[-1].manifest.best) for located in snapshots]  # as the newest has it
    lines = [
        (
            row["version"],
            row["lineage"][:8],
            row["run"],
            row["round"],
            f"{row['rows_seen']:,}",
            age_text(max(0.0, time.time() - row["created_ms"] / 1_000)),
            f"{row['bytes']:,}",
            row["parameters_digest"][:12],
            " ".join(name for name in ("untrained", "archived", "best") if row[name]),
        )
        for row in rows
    ]
    view = table(["version", "lineage", "run", "round", "rows", "age", "bytes", "parameters", ""], lines)
    session.out.document({"snapshots": rows}, view if rows else f"no snapshots of {job} yet")


@app.command("show")
@command
def show(session: Session, job: JobFile, snapshot: Named = None) -> None:
    """Show one snapshot: where it comes from, what it has seen, how well it predicts."""
    found = session.job(job)
    with snapshots_of(found) as topic:
        located, newest = _located(topic, snapshot), topic.newest_manifest()
    assert newest is not None
    document = {**_row(located, newest.manifest.best), **_details(located.manifest)}
    lines = [
        (name, _plain(value)) for name, value in document.items() if name not in ("metrics", "model_spec", "schema")
    ]
    session.out.document(document, table(["", ""], [*lines, *_figures("metrics", document["metrics"])]))


def _located(topic: SnapshotTopic, named: str | None) -> Located:
    version = parse_version(named)
    if version is not None:
        return topic.named(version)
    newest = topic.newest_manifest()
    if newest is None:
        raise UserMistake(f"topic {topic.name}: expected a snapshot, found none yet; start training")
    return newest


def _details(manifest: Manifest) -> dict[str, Any]:
    return {
        "positions": [list(position) for position in manifest.positions.partitions],
        "topic_id": manifest.positions.topic_id,
        "workers": manifest.workers,
        "seed": manifest.seed,
        "build": manifest.build,
        "config_digest": manifest.config_digest,
        "gaps": [dict(gap) for gap in manifest.gaps],
        "imported": [_of_import(each) for each in manifest.imported],
        "model_spec": dict(manifest.model_spec),
        "schema": dict(manifest.schema),
    }


@app.command("get")
@command
def get(
    session: Session,
    job: JobFile,
    snapshot: Named = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Default: <job>-<version>.safetensors; - is standard output."
        ),
    ] = None,
) -> None:
    """Fetch a snapshot's parameters and statistics as a safetensors file, whose metadata tells how to predict."""
    found = session.job(job)
    with snapshots_of(found) as topic:
        stored = topic.load(_located(topic, snapshot), trainer=False)
    version = stored.manifest.version
    file = safetensors_file(stored.manifest, stored.digest, stored.model)
    path = output or Path(f"{found.name}-{version}.safetensors")
    if str(path) == "-":
        sys.stdout.buffer.write(file)
        return
    try:
        path.write_bytes(file)
    except OSError as error:
        raise UserMistake(f"{path}: cannot be written: {error.strerror}") from error
    document = {"version": version, "file": str(path), "bytes": len(file), "digest": stored.digest.hex()}
    session.out.document(document, f"wrote snapshot {version} to {path}, {len(file):,} bytes")


@app.command("export")
@command
def export_(
    session: Session,
    job: JobFile,
    snapshot: Named = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: <job>-<version>.snapshot.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a whole snapshot, with what training goes on from, to a file that `import` reads."""
    found = session.job(job)
    cluster = session.admin(found).cluster_id()
    with snapshots_of(found) as topic:
        located = _located(topic, snapshot)
        manifest = located.manifest
        path = output or Path(f"{found.name}-{manifest.version}{SUFFIX}")
        with _Bytes(session, "exporting", manifest, 1) as progress:
            size = export(topic, located, cluster, path, force, progress.add)
    document = {"version": manifest.version, "file": str(path), "bytes": size, "digest": located.digest.hex()}
    session.out.document(document, f"wrote snapshot {manifest.version} to {path}, {size:,} bytes")


@app.command("import")
@command
def import_(
    session: Session,
    job: JobFile,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file of `snapshots export` or Fitted.save.", show_default=False)
    ],
    positions: Annotated[
        str,
        typer.Option(
            "--positions",
            metavar="|".join(POSITIONS),
            help="Where training goes on: where the snapshot ended, if these are the records it has read (the same "
            "topic id), or at records.start, if a `fit` made it; else at the beginning or the end of the records.",
        ),
    ] = POSITIONS[0],
) -> None:
    """Begin a job that has no snapshot yet with an exported one, or one of a `fit`: its parameters, optimizer state and
    scores."""
    if positions not in POSITIONS:
        raise UserMistake(f"--positions: expected {', '.join(POSITIONS)}, got {positions!r}")
    arm(os.environ.get("STREAMTRAIN_FAILPOINTS", ""))
    with SnapshotFile(file) as opened:  # what is none is said before Kafka is asked
        found = session.connected_job(job)
        with _Bytes(session, "importing", opened.manifest, 2) as progress:
            manifest, digest = Import(found, opened, positions).run(progress.add)
    of = manifest.imported[-1]
    document = {
        "version": manifest.version, "digest": digest.hex(), "lineage": manifest.lineage,
        "imported": [_of_import(each) for each in manifest.imported], "topic_id": manifest.positions.topic_id,
        "positions": [list(position) for position in manifest.positions.partitions],
    }  # fmt: skip
    where = "where it ended" if of.positions == POSITIONS[0] else f"at the {of.positions} of the records"
    text = f"imported snapshot {of.version} of {of.job} as version {manifest.version} of {found.name}"
    session.out.document(document, f"{text}; training goes on {where}")


class _Bytes:
    """Progress over a snapshot's bytes, which are gone over so many times."""

    def __init__(self, session: Session, what: str, manifest: Manifest, times: int) -> None:
        self._bar = Progress(session.out, what, times * (manifest.model.size + manifest.trainer.size))
        self._done = 0

    def add(self, size: int) -> None:
        self._done += size
        self._bar.show(self._done)

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)


def _of_import(of: Imported) -> dict[str, Any]:
    return {**asdict(of), "digest": of.digest.hex()}


def _figures(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """A line for each figure. A list of them, such as the closed windows, is only counted."""
    if isinstance(value, Mapping):
        for inner, figure in value.items():
            yield from _figures(f"{name}.{inner}", figure)
    elif isinstance(value, list):
        yield name, f"a list of {len(value)}; --json shows it"
    else:
        yield name, f"{value:.6g}" if isinstance(value, float) else _plain(value)


def _plain(value: Any) -> str:
    return f"{value:,}" if type(value) is int else str(value)
