"""The names a registry folder holds, without importing its entries: an entry is a file, its name the file's stem."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib.util import find_spec

FOLDERS = {
    "formats": "streamtrain.columns.formats",
    "layers": "streamtrain.compute.layers",
    "losses": "streamtrain.compute.losses",
    "optimizers": "streamtrain.compute.optimizers",
    "ops": "streamtrain.compute.ops",
    "backends": "streamtrain.compute.backends",
}


@cache
def registry_names(kind: str) -> list[str]:
    """The entries of the registry `kind`, sorted."""
    spec = find_spec(FOLDERS[kind])
    assert spec is not None and spec.submodule_search_locations is not None, kind
    found = pkgutil.iter_modules(spec.submodule_search_locations)
    return sorted(module.name for module in found if not module.name.startswith("_"))
