"""`_native.pyi` names exactly what the built module holds."""

from __future__ import annotations

import ast
import enum

from streamtrain import _native

# what Python hangs on the objects of a class and its subclasses; those have a dictionary for it (nb::dynamic_attr)
HUNG_ON: dict[str, set[str]] = {}


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


def test_the_stub_and_the_built_module_agree(root):
    stub = stub_names(ast.parse((root / "streamtrain" / "_native.pyi").read_text()).body)
    built = built_names()
    assert set(stub) == set(built)
    compared = {name for name in built if not is_exception(getattr(_native, name))}
    for base, attributes in HUNG_ON.items():
        assert attributes <= stub[base]
        for name in compared:
            if isinstance(getattr(_native, name), type) and issubclass(getattr(_native, name), getattr(_native, base)):
                stub[name] -= attributes
    assert {name: stub[name] for name in compared} == {name: built[name] for name in compared}


def test_objects_that_python_hangs_things_on_take_them():
    for base in HUNG_ON:
        made = [kind for kind in getattr(_native, base).__subclasses__() if kind.__module__ == _native.__name__]
        assert made and all(kind.__dictoffset__ > 0 for kind in made)
