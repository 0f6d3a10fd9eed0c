"""Shelves: the keys under which the snapshots topic holds its snapshots, and which of them a new one displaces.

A shelf is `s/<version mod keep>`, so an old snapshot gives way to a new one, `a/<number>` of the archive, or
`b/<version mod keep>` of one that was the best when it was written: the one that the newest manifest says is the best
stays, and where it says none yet the newest of these; the others stay as long as those of `s/` do.
"""

from __future__ import annotations

from streamtrain.topics.manifest import Kept, Manifest


def manifest_key(shelf: str) -> bytes:
    return f"{shelf}/m".encode()


def model_key(shelf: str, index: int) -> bytes:
    return f"{shelf}/c/{index:04d}".encode()


def trainer_key(shelf: str, index: int) -> bytes:
    """Apart from the model's, so that a follower need not keep trainer state while it waits for the manifest."""
    return f"{shelf}/t/{index:04d}".encode()


def chunk_keys(shelf: str, model_chunks: int, trainer_chunks: int) -> list[bytes]:
    """In the order the chunks are written."""
    model = [model_key(shelf, index) for index in range(model_chunks)]
    return model + [trainer_key(shelf, index) for index in range(trainer_chunks)]


def all_keys(kept: Kept) -> list[bytes]:
    """Returns the keys that a snapshot in the topic is written under."""
    return [manifest_key(kept.shelf), *chunk_keys(kept.shelf, kept.model_chunks, kept.trainer_chunks)]


def is_manifest(key: bytes | None) -> bool:
    return key is not None and key.endswith(b"/m")


def is_model_chunk(key: bytes) -> bool:
    return b"/c/" in key


def shelved(manifest: Manifest, keep: int, archive_keep: int | None) -> tuple[str, tuple[Kept, ...]]:
    """Returns where `manifest` goes, and what stays beside it. Its `kept` lists what the topic holds before."""
    room = None if archive_keep is None else archive_keep - manifest.archived
    assert keep >= 1 and (room is None or room >= 0), (keep, archive_keep)
    surplus = _surplus(manifest, keep, room)
    rest = [entry for entry in manifest.kept if entry not in surplus]
    is_best = manifest.best == manifest.version
    assert not (manifest.archived and is_best), manifest.version
    shelf = f"{'b' if is_best else 's'}/{manifest.version % keep:04d}"
    shelf = _free_archive_shelf(rest) if manifest.archived else shelf
    return shelf, tuple(entry for entry in rest if entry.shelf != shelf)


def kept_after(manifest: Manifest, digest: bytes, offset: int) -> tuple[Kept, ...]:
    """Returns what the topic holds once `manifest` is committed at `offset`: the next manifest's `kept`."""
    chunks = len(manifest.model.chunks), len(manifest.trainer.chunks)
    return (*manifest.kept, Kept(manifest.shelf, manifest.version, offset, digest, *chunks, manifest.created_ms))


def _surplus(manifest: Manifest, keep: int, archive_room: int | None) -> list[Kept]:
    """Snapshots under keys a smaller `keep` no longer reaches, those that are no longer the best and older than what is
    kept, and the oldest of an archive beyond its room."""
    kept, places = manifest.kept, {f"s/{index:04d}" for index in range(keep)}
    were_best = [entry.version for entry in kept if entry.best]
    best = max(were_best, default=None) if manifest.best is None else manifest.best
    archived = sorted((entry for entry in kept if entry.archived), key=lambda entry: entry.version)
    over = [] if archive_room is None else archived[: max(0, len(archived) - archive_room)]
    others = (entry for entry in kept if entry.best and entry.version != best)
    over += [entry for entry in others if entry.version <= manifest.version - keep]
    return over + [entry for entry in kept if not (entry.archived or entry.best or entry.shelf in places)]


def _free_archive_shelf(stays: list[Kept]) -> str:
    taken = {entry.shelf for entry in stays}
    return next(place for place in (f"a/{index:04d}" for index in range(len(taken) + 1)) if place not in taken)
