"""Functions and classes stay short; a file says what it is for and leaves nothing for later; code trusts no data, and
reads the environment in one place."""

from __future__ import annotations

import ast
import collections
import re
from pathlib import Path

from tests.architecture.sources import nodes, places, text

CLASS_LINES, FUNCTION_LINES = 400, 60
LINE_COLUMNS = 120
DOCSTRING_LINES = 5
OPENINGS = re.compile(r"\s*(As|How|Its|Of|That|Their|Those|To|What|Where|Whether|Who|Whose)\b")
PRODUCT = ("streamtrain", "compute", "topics")
NATIVE = (".h", ".cpp", ".cu", ".cuh")
LATER = re.compile("TO" + r"DO|FIX" + "ME|X" + "XX")


def test_functions_and_classes_are_short(python_trees):
    """A file is as long as its one subject."""
    for limit, kinds in ((FUNCTION_LINES, (ast.FunctionDef, ast.AsyncFunctionDef)), (CLASS_LINES, (ast.ClassDef,))):
        found = places(python_trees, *kinds)
        lengths = {f"{where} {node.name}": node.end_lineno - node.lineno + 1 for _, node, where in found}
        assert {name: lines for name, lines in lengths.items() if lines > limit} == {}


def lines_of(names):
    return {f"{name}:{at}": line for name in names for at, line in enumerate(text(name).splitlines(), 1)}


def test_native_lines_fit(tracked):
    lines = lines_of(name for name in tracked if name.endswith(NATIVE))
    assert {place: len(line) for place, line in lines.items() if len(line) > LINE_COLUMNS} == {}


def test_modules_say_what_they_are_for(python_trees):
    wrong = []
    for name, tree in python_trees.items():
        doc = ast.get_docstring(tree)
        if doc is None and tree.body:
            wrong.append(f"{name}: no docstring")
        elif doc is not None and len(doc.strip().splitlines()) > DOCSTRING_LINES:
            wrong.append(f"{name}: docstring of more than {DOCSTRING_LINES} lines")
    assert wrong == []


def test_docstrings_open_with_a_verb_or_an_article(python_trees):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        f"{name}:{getattr(node, 'lineno', 1)}"
        for name, tree in python_trees.items() for node in ast.walk(tree)
        if isinstance(node, kinds) and OPENINGS.match(ast.get_docstring(node) or "")
    ]  # fmt: skip
    assert found == []


# the words of settings, JSON keys, native names and the public API stay until they are renamed together; those of
# asyncio stay
PARTICIPLES = re.compile(r"(?i)(^|_)(told|held(?!_out)|judged|asked|wanted|made|shown)(_|$)")
SEEN_OUTSIDE = {"held", "_held", "judged", "connection_made", "snapshot_made_ms"}


def test_no_identifier_is_a_participle(python_trees):
    """Names of modules, too; a participle does not say what a value is."""
    found = {name for name in python_trees if PARTICIPLES.search(Path(name).stem)}
    kinds = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.keyword: "arg"}
    kinds |= dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), "name")
    for name, tree in python_trees.items():
        for node in ast.walk(tree):
            word = getattr(node, kinds.get(type(node), ""), None)
            if word and word not in SEEN_OUTSIDE and not word.startswith("test_") and PARTICIPLES.search(word):
                found.add(f"{name}:{node.lineno} {word}")
    assert found == set()


def test_a_module_has_a_name_of_its_own(tracked):
    """An entry of a registry is named as users name it, whatever else has that name."""
    stems = collections.defaultdict(list)
    for name in map(Path, tracked):
        if name.suffix == ".py" and name.parts[0] in PRODUCT and name.stem not in ("__init__", "__main__"):
            registry = name.parent / "__init__.py"
            if not (registry.exists() and "\nREGISTRY = " in text(str(registry))):
                stems[name.stem].append(str(name))
    assert {stem: names for stem, names in stems.items() if len(names) > 1} == {}


def test_nothing_is_left_for_later(tracked):
    code = [name for name in tracked if name.endswith((".py", ".pyi", ".txt", ".toml", ".yml", *NATIVE))]
    lines = lines_of(name for name in code if LATER.search(text(name)))
    assert {place: line for place, line in lines.items() if LATER.search(line)} == {}


# beside the command line: what hands its own environment on to a child, and what a machine says of its backends
READ_ON = {"streamtrain.run.host", "streamtrain.compute.backends"}
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "jsonpickle"}
# what a program hands its own workers comes to them through the pipes it started them with
OWN = {"streamtrain.compute.torch.handed": {"cloudpickle"}}
UNSAFE_CALLS = {"eval", "exec", "__import__", "yaml.load", "yaml.unsafe_load", "torch.load", "os.system"}


def name_of(node: ast.AST) -> str:
    """`a.b.c` of a name or attribute, else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return ""


def test_environment_and_arguments_are_read_by_the_command_line_only(package_trees):
    names = re.compile(r"os\.(environb?|getenvb?|putenv)|sys\.(orig_)?argv")
    wrong = []
    for module, node, place in places(package_trees, ast.Attribute, ast.ImportFrom):
        taken = [name_of(node)] if isinstance(node, ast.Attribute) else [f"os.{each.name}" for each in node.names]
        if any(map(names.fullmatch, taken)) and not module.startswith("streamtrain.cli") and module not in READ_ON:
            wrong.append(place)
    assert wrong == []


def test_no_code_from_data(package_trees):
    wrong = []
    for module, node, place in places(package_trees, ast.Import, ast.ImportFrom):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        if (UNSAFE_MODULES - OWN.get(module, set())) & {name.split(".")[0] for name in names}:
            wrong.append(f"{place} imports {names}")
    for _, node, place in places(package_trees, ast.Call):
        if name_of(node.func) in UNSAFE_CALLS:
            wrong.append(f"{place} calls {name_of(node.func)}")
        for each in node.keywords:
            is_false = isinstance(each.value, ast.Constant) and each.value.value is False
            if each.arg in ("allow_pickle", "shell") and not is_false:
                wrong.append(f"{place} {each.arg}")
    assert wrong == []


def test_tests_wait_for_a_state(python_trees):
    """A sleep in a test stands inside a `while` that asks for something."""
    wrong = []
    for name, node, place in places(python_trees, ast.Call):
        if name.startswith("tests/") and name_of(node.func) in ("time.sleep", "sleep"):
            loops = nodes(python_trees[name], ast.While)
            wrong += [place] if not any(loop.lineno <= node.lineno <= loop.end_lineno for loop in loops) else []
    assert wrong == []


def test_children_import_what_is_installed_not_what_lies_in_the_working_folder(package_trees):
    """Without -P (or -I) Python looks for modules in the working folder first; the demo is started in a checkout."""
    lists = {place: node.elts for _, node, place in places(package_trees, ast.List)}
    started = {place: each[1] for place, each in lists.items() if each and name_of(each[0]) == "sys.executable"}
    assert started
    assert [place for place, flag in started.items() if getattr(flag, "value", None) not in ("-P", "-I")] == []
