"""The product uses all that is shipped: no module, no definition and nothing bound is there for tests alone.

What is used is known by its name: one that others have too is not missed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

import streamtrain
from streamtrain.registry import registries
from tests.architecture.sources import nodes, text

# the reason why it is bound -> what is bound, and named by no module of ours
BOUND_FOR_A_REASON = {
    "a test gives it the time, which no test can wait for": "Silence Silence.lasts",
    "the type of what SupervisorEnd.worker gives": "WorkerLook",
    "measured alone by its bench": "average",
    "tests ask whether both halves of each are there": "cell_transforms column_kinds decoder_formats",
    "a test reads the whole table": "kafka_responses",
    "tests run what every instruction set of the machine computes": "supported_isas",
    "tests fill rounds by hand": "Arena.slot_address",
    "a test of ingest waits until the ring is full": "Arena.slot_count",
    "a test asks whether another process sees the same": "Arena.state_layout",
    "tests compare a program's rows, which RowScorer takes, with their records": "BatchFiller.fill_rows",
    "ingest is measured alone by its bench, which needs a coordinator": "CoordinatorEnd.release_slots",
    "the predictor or ingest calls it from C++; its test on a real Kafka drives it alone": (
        "KafkaConsumer.assignment KafkaConsumer.pause KafkaConsumer.position KafkaConsumer.resume "
        "KafkaConsumer.rewind_to_committed KafkaConsumer.seek KafkaConsumer.subscribe"
    ),
    "a test makes each outcome there is and asks what follows": (
        "KafkaOutcome.fatal KafkaOutcome.requires_abort KafkaOutcome.retriable"
    ),
    "tests of kernels fill the step block by hand": "StepBlock.active_rows",
    "a test asks CUDA's plan how many steps it may have under way": "Plan.steps_ahead",
}
# defined, and named by nothing else of ours: what it begins with, or is -> why
CALLED_BY_NAME = {
    "_on_": "telemetry: a meter's method for an event of this name",
    "model_config": "pydantic reads it",
}
DEFINED_FOR_A_REASON = {
    "click calls it": "CommandFolder.list_commands CommandFolder.resolve_command LazyCommand.make_context",
    "io calls it": "_InTime.readable _InTime.readinto",
    "a program calls it: docs/fit.md": "History.plot",
    "a topic's contract: its golden messages are of this version": "Topic.wire_version",
    "a layer's contract: what its tests try": "examples",
}
# decorators that do not hand a function to somebody who calls it
PLAIN_DECORATORS = {"abstractmethod", "cache", "cached_property", "classmethod", "contextmanager", "dataclass",
                    "property", "runtime_checkable", "staticmethod"}  # fmt: skip
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def allowed(reasons: dict[str, str]) -> set[str]:
    return {name for names in reasons.values() for name in names.split()}


def imported(trees: dict[str, ast.Module]) -> set[str]:
    """Every dotted name an import asks for, and `from a import b` as a.b too."""
    found: set[str] = set()
    for tree in trees.values():
        found |= {alias.name for node in nodes(tree, ast.Import) for alias in node.names}
        for node in nodes(tree, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@functools.cache
def named(tree: ast.AST) -> dict[str, bool]:
    """The names that a tree uses, except a definition's own within it, and whether it does more than set them."""
    found: dict[str, bool] = {}
    left: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
    while left:
        node, within = left.pop()
        if isinstance(node, DEFINITIONS):
            within |= {node.name}
        is_set = isinstance(node, ast.Attribute | ast.Name) and not isinstance(node.ctx, ast.Load)
        for name in names_in(node):
            if name not in within:
                found[name] = found.get(name, False) or not is_set
        left += [(child, within) for child in ast.iter_child_nodes(node) if child._fields]
    return found


def names_in(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]  # getattr's, a field's in a dict
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names if alias.asname]
    return node.kwd_attrs if isinstance(node, ast.MatchClass) else []


def read(tree: ast.AST) -> set[str]:
    """The names that a tree does more than set."""
    return {name for name, is_read in named(tree).items() if is_read}


def defined(body: list[ast.stmt], inside: str = "") -> Iterator[tuple[str, str]]:
    """(as it is shown, name) of what a module or a class defines: functions, classes, constants, members."""
    for node in body:
        if isinstance(node, DEFINITIONS):
            decorators = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
            if {ast.unparse(each).rpartition(".")[2] for each in decorators} <= PLAIN_DECORATORS:
                yield inside + node.name, node.name
            if isinstance(node, ast.ClassDef) and "Enum" not in ast.unparse(node).split("\n")[0]:
                yield from defined(node.body, f"{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name | ast.Tuple):
                    yield from ((inside + each.id, each.id) for each in ast.walk(target) if isinstance(each, ast.Name))


def test_every_module_is_imported_by_the_product(package_trees: dict[str, ast.Module]) -> None:
    homes = set(streamtrain._HOMES.values())
    packages = {name for name in package_trees if any(other.startswith(f"{name}.") for other in package_trees)}
    entries = {f"{registry.package}.{name}" for registry in registries().values() for name in registry.names()}
    known = imported(package_trees) | entries | homes | packages
    left = [
        name for name in package_trees
        if name not in known and not name.endswith("__main__") and not name.startswith("streamtrain.integrations.")
    ]  # fmt: skip
    assert left == []


def test_what_is_bound_is_called_by_the_product(package_trees: dict[str, ast.Module]) -> None:
    stub = ast.parse(text("streamtrain/_native.pyi"))
    bound = {full_name: name for full_name, name in defined(stub.body) if not name.startswith("_")}
    known = set().union(*map(named, package_trees.values()))
    bases = {ast.unparse(base) for node in stub.body if isinstance(node, ast.ClassDef) for base in node.bases}
    unused = {full_name for full_name, name in bound.items() if name not in known | bases}
    expected = allowed(BOUND_FOR_A_REASON)
    assert unused - expected == set()
    assert expected - set(bound) == set()


def test_what_is_defined_is_named_by_the_product(package_trees: dict[str, ast.Module]) -> None:
    known = set().union(*map(read, package_trees.values()))
    unused = {
        (module, full_name)
        for module, tree in package_trees.items()
        if not module.startswith("streamtrain.integrations.")  # called by its package
        for full_name, name in defined(tree.body)
        if name not in known and not name.startswith(("__", *CALLED_BY_NAME))
        # a member of what other programs import from `streamtrain`
        if full_name.partition(".")[0] not in streamtrain._HOMES or "._" in full_name
    }
    expected = allowed(DEFINED_FOR_A_REASON)
    assert {each for each in unused if each[1] not in expected} == set()
    assert expected - {full_name for _, full_name in unused} == set(), "named now"


def test_what_names_only_itself_is_found() -> None:
    tree = ast.parse(
        "SIZE = 1\n"
        "class Made:\n    width: int\n"
        "    def go(self): self.go(); self.width = SIZE\n    def stay(self): Made().stay\n"
        "@command\ndef run(): pass\n@cache\ndef kept(): kept()\n"
    )
    assert {name for _, name in defined(tree.body)} - read(tree) == {"Made", "width", "go", "stay", "kept"}
    assert {name for _, name in defined(tree.body)} - set(named(tree)) == {"Made", "stay", "go", "kept"}
