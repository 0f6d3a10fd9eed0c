"""`_native.pyi` names exactly what the built module holds."""

from __future__ import annotations

import ast
import enum

from streamtrain import _native
from tests.architecture.sources import text


def public_names(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """What a stub's body defines, without private helpers."""
    names: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
        elif isinstance(node, ast.Assign):
            names |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return names


def stub_names(body: list[ast.stmt]) -> dict[str, set[str]]:
    """Each public name of the stub, with the public members where it is a class, those of its bases in the stub too."""
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}

    def members(node: ast.ClassDef) -> set[str]:
        inherited = [members(classes[base.id]) for base in node.bases if getattr(base, "id", "") in classes]
        own = {name for name in public_names(node.body) if not name.startswith("_")}
        return own.union(*inherited)

    public = {name: node for name, node in public_names(body).items() if not name.startswith("_")}
    return {name: members(node) if isinstance(node, ast.ClassDef) else set() for name, node in public.items()}


def built_names() -> dict[str, set[str]]:
    """The same of the built module."""
    names: dict[str, set[str]] = {}
    for name, value in vars(_native).items():
        if name.startswith("_"):
            continue
        names[name] = set()
        if isinstance(value, enum.EnumType):
            names[name] = set(value.__members__)
        elif isinstance(value, type):
            names[name] = {member for member in dir(value) if not member.startswith("_")}
    return names


def is_exception(value: object) -> bool:
    """Exceptions inherit members no stub repeats."""
    return isinstance(value, type) and issubclass(value, Exception)


def test_the_stub_and_the_built_module_agree():
    stub = stub_names(ast.parse(text("streamtrain/_native.pyi")).body)
    built = built_names()
    assert set(stub) == set(built)
    compared = {name for name in built if not is_exception(getattr(_native, name))}
    assert {name: stub[name] for name in compared} == {name: built[name] for name in compared}
