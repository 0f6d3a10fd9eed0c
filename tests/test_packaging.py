"""Tests of what is packed and what a program may import: sources, wheels, registries whose entries are files, names
and types.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import streamtrain
from streamtrain import _native, errors
from streamtrain.build import build_digest
from streamtrain.errors import UserMistake
from streamtrain.registry import ModuleRegistry, Registry, registries

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CIBUILDWHEEL = PROJECT["tool"]["cibuildwheel"]
NEEDED = ("pyproject.toml", "LICENSE", "README.md", "native/CMakeLists.txt", "native/module.cpp", "compute/__init__.py",
          "topics/__init__.py", "streamtrain/broker/kafka_jars.txt")  # fmt: skip


@pytest.mark.full
def test_the_source_distribution_holds_the_sources_and_no_builds(kept_build: Callable[..., Path]) -> None:
    def build(out: Path) -> None:
        command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(out), str(ROOT)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    out = kept_build("sdist", ("native", "compute", "topics", "streamtrain", "pyproject.toml"), build)
    (source,) = out.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert set(NEEDED) <= names
    builds = [name for name in names if name.endswith((".so", ".pyc", ".o")) or name.startswith((".venv", "build/"))]
    assert builds == []


@pytest.mark.full
def test_it_would_make_one_for_each_python_and_machine() -> None:
    pytest.importorskip("cibuildwheel", reason="not installed (extra test-full)")
    command = [sys.executable, "-m", "cibuildwheel", "--platform", "linux", "--print-build-identifiers", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    wheels = re.findall(r"^cp3(\d+)-manylinux_(\w+)$", done.stdout, re.MULTILINE)
    assert len(wheels) == len(done.stdout.split())
    assert {machine for _, machine in wheels} == {"x86_64", "aarch64"}
    for machine in ("x86_64", "aarch64"):
        minors = sorted(int(minor) for minor, its in wheels if its == machine)
        assert minors == list(range(minors[0], minors[-1] + 1)) and minors[-1] >= 14
        assert PROJECT["project"]["requires-python"] == f">=3.{minors[0]}"


def test_what_tries_them_is_there() -> None:
    assert set(CIBUILDWHEEL["test-extras"]) <= set(PROJECT["project"]["optional-dependencies"])
    assert all((ROOT / name).exists() for name in CIBUILDWHEEL["test-sources"])
    named = [word for line in CIBUILDWHEEL["test-command"] for word in shlex.split(line) if word.startswith("tests/")]
    assert named and all((ROOT / name).exists() for name in named)
    ranges = {re.split(r"[<>=]", each)[0]: each for each in PROJECT["project"]["optional-dependencies"]["test"]}
    for each in CIBUILDWHEEL["test-requires"]:
        assert ranges[re.split(r"[<>=]", each)[0]] == each  # the same range


NATIVE = ROOT / "native"


def test_the_native_part_is_over_every_native_source() -> None:
    files = {path for path in NATIVE.rglob("*") if path.is_file() and path.name != "CMakeLists.txt"}
    assert {path.suffix for path in files} == {".h", ".cpp", ".cmake"}, "a kind of file that may not be in the digest"
    listing = "".join(
        f"{path.relative_to(NATIVE).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for path in sorted([*files, NATIVE / "CMakeLists.txt"], key=str)
    )
    assert hashlib.sha256(listing.encode()).hexdigest() == _native.SOURCE_DIGEST, "build the extension again"


@pytest.mark.parametrize(
    ("name", "more", "same"),
    [
        ("", "", True),
        ("compute/input.py", "# another order of operations\n", False),
        ("compute/ops/adam.py", "# another order of operations\n", False),
        ("columns/plan.py", "# another order of operations\n", False),
        ("compute/ops/another.py", "", False),
        ("cli/app.py", "# a word\n", True),
    ],
)
def test_python_that_decides_bits_counts_as_it_runs(tmp_path: Path, name: str, more: str, same: bool) -> None:
    """In the package as an installation lays it out, the built extension in it; what decides no bit does not count."""
    package = tmp_path / "site" / "streamtrain"
    shutil.copytree(ROOT / "streamtrain", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_native.__file__, package)
    if name:
        with (package / name).open("a") as source:
            source.write(more)
    program = (
        f"import sys; sys.path[:0] = {[str(package.parent)]!r}\nimport streamtrain.build as b; print(b.build_digest())"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout.strip() == build_digest()) == same


@pytest.fixture
def sample_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Registry:
    """A registry of two entries and a file that is none."""
    name = f"made_{abs(hash(request.node.nodeid))}"
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one_thing.py").write_text('HELP = "the " "first"\n')
    (package / "other.py").write_text('"""The second.\n\nMore."""\nHELP: str = str(2)\nORDER = 7\n')
    (package / "shared.py").write_text('"""HELP of no entry."""\nTEXT = "HELP = 1"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    return Registry(name, "a thing", dashed=True)


def test_an_entry_is_a_file_with_the_registrys_word(sample_registry: Registry) -> None:
    assert sample_registry.names() == ["one_thing", "other"]
    assert sample_registry.describe() == {"one_thing": "the first", "other": "The second."}
    assert sample_registry.constants("other") == {"__doc__": "The second.\n\nMore.", "ORDER": 7}
    assert not [name for name in sys.modules if name.startswith(f"{sample_registry.package}.")]
    assert sample_registry.get("one-thing") is sample_registry.get("one_thing")


def test_an_unknown_name_gets_those_there_are_and_the_nearest(sample_registry: Registry) -> None:
    for given in ("one-think", "shared", "../other"):
        with pytest.raises(UserMistake, match="a thing: expected one of one-thing, other, got") as refused:
            sample_registry.get(given)
        assert ("did you mean 'one-thing'" in str(refused.value)) == (given == "one-think")


def test_an_entry_of_a_module_is_a_decorated_function() -> None:
    registry = ModuleRegistry("made", "a thing", lambda do, help, size=1: SimpleNamespace(do=do, help=help, size=size))
    for name in ("two", "one"):
        def thing(name: str = name) -> str:
            return name

        thing.__name__ = name
        assert registry.entry(f"the {name}", size=7)(thing) is thing
    assert registry.names() == ["one", "two"] and registry.describe() == {"one": "the one", "two": "the two"}
    assert registry.get("two").do() == "two" and registry.get("two").size == 7
    with pytest.raises(UserMistake, match="a thing: expected one of one, two, got 'onn'; did you mean 'one'"):
        registry.get("onn")


def test_every_entry_has_a_line_of_help_and_can_be_imported() -> None:
    wrong = []
    for folder, registry in registries().items():
        assert registry.names() and registry.package.endswith(f".{folder}")
        wrong += [
            (folder, name, text) for name, text in registry.describe().items()
            if not text or "\n" in text or not hasattr(registry.get(name), getattr(registry, "word", "help"))
        ]  # fmt: skip
    assert wrong == []


def test_the_names_and_help_of_all_registries_import_no_entry() -> None:
    code = """
import sys
from streamtrain.registry import registries
names = [f"{registry.package}.{name}" for registry in registries().values() for name in registry.describe()]
sys.exit(str(imported) if (imported := sys.modules.keys() & names) else 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", registries()["roles"].names())
def test_every_process_role_takes_a_plain_config(name: str) -> None:
    role = registries()["roles"].get(name)
    assert dataclasses.is_dataclass(role.Config)
    config, *others = inspect.signature(role.run).parameters.values()
    assert config.name == "config"
    assert [other.name for other in others if other.default is inspect.Parameter.empty] == []
    assert inspect.signature(role.run).return_annotation == "int"  # the exit code


ERRORS = {name for name, error in inspect.getmembers(errors, inspect.isclass) if error.__module__ == errors.__name__}
TYPES = (
    "Answer", "EarlyStopped", "Fitted", "FittedWindow", "HeadsAnswer", "ModelAnswer", "Moment",
    "Published", "RowAnswer", "RowError", "RunEnded", "Snapshot",
)  # fmt: skip
CALLS = (
    "EarlyStopping", "EarlyStoppingParallelTrainer", "EarlyStoppingTrainer", "Job", "LiveModel", "ParallelWrapper",
    "RecordWriter", "fit", "fit_window", "follow_snapshots", "history", "read_predictions",
)  # fmt: skip
EXPORTS = (*CALLS, *TYPES, *sorted(ERRORS))


def test_each_is_there_and_no_other_name() -> None:
    assert [name for name in EXPORTS if getattr(getattr(streamtrain, name, None), "__name__", None) != name] == []
    with pytest.raises(AttributeError, match="has no attribute 'Jbo'"):
        streamtrain.Jbo  # type: ignore[attr-defined]  # noqa: B018


def test_the_stub_says_where_each_comes_from() -> None:
    path = Path(streamtrain.__file__).with_suffix(".pyi")
    imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module for node in imports for alias in node.names}
    assert homes == streamtrain._HOMES and sorted(homes) == sorted(EXPORTS)
    assert set(EXPORTS) < set(dir(streamtrain)) and set(streamtrain.__all__) == {*EXPORTS, "__version__"}


TYPED = """
from typing import assert_type

import numpy as np
from streamtrain import (
    LiveModel, ModelAnswer, RecordError, RowAnswer, RowError, StreamtrainError, read_predictions,
)

model = LiveModel("job", "localhost:9092")
assert_type(model.predict({"x": 1, "carrier": "UA"}), RowAnswer)
assert_type(model.predict({"x": 1, "carrier": "UA"}, errors="return"), RowAnswer | RecordError)
assert_type(model.predict([{"x": 1}]), list[RowAnswer])
assert_type(model.predict([{"x": 1}], errors="return"), list[RowAnswer | RecordError])
assert_type(model.predict({"x": np.zeros(3)}), list[RowAnswer])
assert_type(model.predict({"x": [1, 2]}), list[RowAnswer])
assert_type(model.answer({"x": 1}), ModelAnswer[RowAnswer])
assert_type(model.error, StreamtrainError | None)
for answer in read_predictions("job", "localhost:9092"):
    assert_type(answer.prediction, RowAnswer | list[RowAnswer | RowError] | None)
"""


@pytest.mark.full
def test_predict_and_answers_are_typed(tmp_path: Path) -> None:
    """With what mypy has found out of the package, or finds out here for its next run."""
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", str(tmp_path / "typed.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
