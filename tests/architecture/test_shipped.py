"""What is shipped is used by the product: no module and nothing bound is there for tests alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import streamtrain
from streamtrain.registry import registries

# bound, and named by no module of ours, with the reason it is bound all the same
BOUND_FOR_A_REASON = {
    "Silence": "a test gives it the time, which no test can wait for",
    "WorkerLook": "the type of what SupervisorEnd.worker gives",
    "average": "measured alone by its bench",
    "cell_transforms": "tests ask whether both halves of each are there",
    "column_kinds": "tests ask whether both halves of each are there",
    "decoder_formats": "tests ask whether both halves of each are there",
    "kafka_responses": "a test reads the whole table",
    "supported_isas": "tests run what every instruction set of the machine computes",
}


def imported(trees: dict[str, ast.Module]) -> set[str]:
    """Every dotted name an import asks for, and `from a import b` as a.b too."""
    found: set[str] = set()
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def entries() -> set[str]:
    """The modules registries find by their folder."""
    return {f"{registry.package}.{name}" for registry in registries().values() for name in registry.names()}


def names_in(node: ast.AST) -> list[str]:
    """What an expression or an import names."""
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names]
    return [node.id] if isinstance(node, ast.Name) else []


def test_every_module_is_imported_by_the_product(package_trees: dict[str, ast.Module]) -> None:
    homes = set(streamtrain._HOMES.values())
    packages = {name for name in package_trees if any(other.startswith(f"{name}.") for other in package_trees)}
    known = imported(package_trees) | entries() | homes | packages
    left = [
        name for name in package_trees
        if name not in known and not name.endswith("__main__") and not name.startswith("streamtrain.integrations.")
    ]  # fmt: skip
    assert left == []


def test_what_is_bound_is_called_by_the_product(root: Path, package_trees: dict[str, ast.Module]) -> None:
    stub = ast.parse((root / "streamtrain" / "_native.pyi").read_text())
    bound = {node.name for node in stub.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    named = {
        part
        for tree in package_trees.values()
        for node in ast.walk(tree)
        for part in names_in(node)
    }
    bases = set(re.findall(r"^class \w+\((\w+)\)", (root / "streamtrain" / "_native.pyi").read_text(), re.MULTILINE))
    unused = {name for name in bound - named - bases if not name.startswith("_")}
    assert unused - set(BOUND_FOR_A_REASON) == set()
    assert set(BOUND_FOR_A_REASON) <= bound
