"""The entries of the registries as `list` shows them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from streamtrain.job.registries import FOLDERS, registry_names


def entries(kind: str) -> dict[str, dict[str, Any]]:
    """Each entry with its HELP, or the first line of its file."""
    found: dict[str, dict[str, Any]] = {}
    for name in registry_names(kind):
        module = import_module(f"{FOLDERS[kind]}.{name}")
        found[name] = {"help": getattr(module, "HELP", None) or (module.__doc__ or "").strip().split("\n")[0]}
    return found
