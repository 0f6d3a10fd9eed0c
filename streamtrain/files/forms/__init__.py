"""Forms of files: each file that has a HELP is one, by its stem; with SUFFIXES, the ends of such files' names.

One that is read has rows(source) -> Iterator[(line, row)], and perhaps blocks(source, wanted, size), which are faster,
and count(source). One that is written has Writer(file, path, parts) with add(batch), whose arrays hold until it
returns, finish(), close() in any case, and LISTS (cells may be some). TEXT: it may come from standard input.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from streamtrain.errors import UserMistake
from streamtrain.files.source import COMPRESSED
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "file")
form_names: Callable[[], list[str]] = REGISTRY.names
file_form: Callable[[str], ModuleType] = REGISTRY.get


def suffixes(having: str) -> dict[str, str]:
    """The ends of names of the files whose form has that (rows, Writer), and their form."""
    modules = {name: file_form(name) for name in form_names()}
    return {end: name for name, module in modules.items() if hasattr(module, having) for end in module.SUFFIXES}


def form_of(path: str, having: str) -> str:
    """The form of a file, by its name's end before .gz or .zst. UserMistake for another."""
    known = suffixes(having)
    ends = [end.lower() for end in Path(path).suffixes]
    if having == "rows" and ends[-1:] and ends[-1] in COMPRESSED:
        del ends[-1]
    found = known.get(ends[-1]) if ends else None
    if found is None:
        beside = ", or - for standard input" if having == "rows" else ""
        raise UserMistake(f"{path}: expected a file ending in {', '.join(known)}{beside}")
    return found
