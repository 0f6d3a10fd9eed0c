"""`pytest -m mutants`: each named guard is taken out of a copy of the sources, one at a time, and its test goes red.

A guard is (name, file, the text that is it, what stands there without it, the test that must fail). Each file beside
this one that has a list GUARDS adds to them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.mutants.tree import ROOT, Tree

Guard = tuple[str, str, str, str, str]


def _guards() -> list[Guard]:
    found: list[Guard] = []
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem in (Path(__file__).stem, "tree"):
            continue
        spec = importlib.util.spec_from_file_location(f"mutants_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += module.GUARDS
    return found


GUARDS = _guards()


def by_name(guard: Guard) -> str:
    return guard[0].replace(" ", "-")


@pytest.mark.parametrize("guard", GUARDS, ids=by_name)
def test_the_guard_stands_where_the_list_says(guard: Guard) -> None:
    _, file, old, new, test = guard
    assert (ROOT / file).read_text().count(old) == 1 and old != new
    path, _, name = test.partition("::")
    whole = (ROOT / path).read_text()
    assert not name or f"def {name.partition('[')[0].rpartition('::')[2]}(" in whole


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("mutants"))


@pytest.mark.mutants
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("guard", GUARDS, ids=by_name)
def test_a_test_misses_the_guard(tree: Tree, guard: Guard) -> None:
    _, file, old, new, test = guard
    tree.change(file, old, new)
    try:
        without = tree.test(test)
    finally:
        tree.restore(file)
    assert without.returncode == 1, f"{test} is not red without it ({without.returncode})\n{without.stdout[-3000:]}"
    assert tree.test(test).returncode == 0, f"{test} is red with it too"
