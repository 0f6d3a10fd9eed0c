"""Settings whose text may stand in a file of its own, beside the job file: read here, and held as the text."""

from __future__ import annotations

from pathlib import Path

from streamtrain.columns import formats
from streamtrain.compute.options import Document
from streamtrain.job.lines import Path as Keys
from streamtrain.job.mistakes import Mistake, show_path, show_value
from streamtrain.job.sections import Records
from streamtrain.job.setting_sources import Gathered
from streamtrain.schemas import is_framed


def read_documents(gathered: Gathered, folder: Path | None) -> None:
    """Puts the texts of files in the place of their names, as seen from `folder`; mistakes are added.

    Without a folder no file is read: what a manifest holds names none.
    """
    records = gathered.tree.get("records")
    name = records.get("format", Records.model_fields["format"].default) if isinstance(records, dict) else None
    if not isinstance(records, dict) or name not in formats.format_names():
        return
    for setting, option in formats.options(name).items():
        given = records.get(setting)
        if isinstance(option, Document) and isinstance(given, str):
            try:
                text = option.reading(given if option.is_text(given) else _text(folder, given, option))
            except ValueError as error:
                path: Keys = ("records", setting)
                got = f"{show_value(given)}: {error}"
                gathered.mistakes.append(Mistake(gathered.where(path), show_path(path), option.takes(), got))
            else:
                gathered.tree["records"] = {**gathered.tree["records"], setting: text}


def frame_records(gathered: Gathered) -> None:
    """Fills in what a format implies where the job has a registry and its file does not say otherwise."""
    records = gathered.tree.get("records")
    if isinstance(records, dict) and records.get("format") in formats.format_names():
        implied = getattr(formats.record_format(records["format"]), "REGISTRY_OPTIONS", {})
        gathered.tree["records"] = {**implied, **records}


def check_frame(gathered: Gathered) -> None:
    """A mistake where records name their schemas and no registry of the job knows them: it would wait for ever."""
    records = gathered.tree.get("records")
    if isinstance(records, dict) and is_framed(records):
        path: Keys = ("records", "frame")
        expected = 'a [registry] with a url, where its ids are known, or frame = "none"'
        gathered.mistakes.append(Mistake(gathered.where(path), show_path(path), expected, show_value(records["frame"])))


def check_schema(gathered: Gathered) -> None:
    """A mistake where records that name their schemas have none they are read by, and no registry of the job has it."""
    records = gathered.tree.get("records")
    if not isinstance(records, dict) or not is_framed(records) or "schema" in records:
        return
    name = records.get("format")
    if name in formats.format_names() and formats.needs_schema(name):
        path: Keys = ("records", "schema")
        takes = formats.options(name)["schema"].takes()
        gathered.mistakes.append(Mistake(gathered.where(("records",)), show_path(path), f"missing, expected {takes}"))


def _text(folder: Path | None, name: str, option: Document) -> str:
    if folder is None:
        raise ValueError("no text")
    try:
        return option.of_file((folder / name).read_bytes())
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except OSError as error:
        raise ValueError(error.strerror) from None
