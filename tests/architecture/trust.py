"""What the package never does: read the environment below the command line, or run code that came as data."""

from __future__ import annotations

import ast
import re

from tests.architecture.sources import nodes

# the modules, beside the command line, that hand their own environment on to a child
PASS_ON = {"streamtrain.run.host"}
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
    for module, tree in package_trees.items():
        if module.startswith("streamtrain.cli") or module in PASS_ON:
            continue
        for node in nodes(tree, ast.Attribute, ast.ImportFrom):
            taken = [name_of(node)] if isinstance(node, ast.Attribute) else [f"os.{each.name}" for each in node.names]
            if any(map(names.fullmatch, taken)):
                wrong.append(f"{module}:{node.lineno}")
    assert wrong == []


def test_no_code_from_data(package_trees):
    wrong = []
    for module, tree in package_trees.items():
        for node in nodes(tree, ast.Import, ast.ImportFrom, ast.Call, ast.keyword):
            asked: list[str] = []
            if isinstance(node, ast.Import):
                asked = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                asked = [node.module or ""]
            if (UNSAFE_MODULES - OWN.get(module, set())) & {name.split(".")[0] for name in asked}:
                wrong.append(f"{module}:{node.lineno} imports {asked}")
            if isinstance(node, ast.Call) and name_of(node.func) in UNSAFE_CALLS:
                wrong.append(f"{module}:{node.lineno} calls {name_of(node.func)}")
            if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell"):
                constant = node.value.value if isinstance(node.value, ast.Constant) else None
                if constant is not False:
                    wrong.append(f"{module}:{node.value.lineno} {node.arg}")
    assert wrong == []


def test_tests_wait_for_a_state(python_trees):
    """A sleep in a test stands inside a `while` that asks for something."""
    wrong = []
    for name, tree in python_trees.items():
        if not name.startswith("tests/"):
            continue
        for node in nodes(tree, ast.Call):
            sleeps = name_of(node.func) in ("time.sleep", "sleep")
            if sleeps and not any(loop.lineno <= node.lineno <= loop.end_lineno for loop in nodes(tree, ast.While)):
                wrong.append(f"{name}:{node.lineno}")
    assert wrong == []


def test_children_import_what_is_installed_not_what_lies_in_the_working_folder(package_trees):
    """Without -P (or -I) Python looks for modules in the working folder first; the demo is started in a checkout."""
    wrong = []
    started = 0
    for module, tree in package_trees.items():
        for node in nodes(tree, ast.List):
            if node.elts and name_of(node.elts[0]) == "sys.executable":
                flag = node.elts[1].value if isinstance(node.elts[1], ast.Constant) else None
                started += 1
                if flag not in ("-P", "-I"):
                    wrong.append(f"{module}:{node.lineno}")
    assert started
    assert wrong == []
