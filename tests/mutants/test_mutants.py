"""`pytest -m mutants` takes each guard out of a copy of the sources, one at a time, and expects its test to fail."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.mutants import checks, guarantees
from tests.mutants.guard import Guard
from tests.mutants.tree import ROOT, Tree

GUARDS = (*guarantees.GUARDS, *checks.GUARDS)
TEST = re.compile(r"^(?:    )?def (test_\w+)\(", re.MULTILINE)


@functools.cache
def files_by_test() -> dict[str, list[str]]:
    """The files, from the checkout's root, that define a test function of each name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in TEST.findall(path.read_text()):
            found[name].append(str(path.relative_to(ROOT)))
    return found


def nodes(guard: Guard) -> list[str]:
    """The test functions that a guard may mean."""
    end, _, name = guard.test.rpartition("::")
    return [f"{file}::{name}" for file in files_by_test()[name] if file.endswith(end)]


def lost(guard: Guard) -> Iterator[str]:
    """Yields what is wrong with a guard."""
    path = ROOT / guard.file
    count = path.read_text().count(guard.old) if path.is_file() else 0
    if count != 1:
        yield f"{guard.breaks} {guard.file}: expected the guard's text once, found it {count} times"
    if len(nodes(guard)) != 1:
        yield f"{guard.breaks} {guard.test}: expected one test function, found {nodes(guard)}"


def test_each_guard_has_its_text_and_its_test() -> None:
    assert [text for guard in GUARDS for text in lost(guard)] == []
    assert len({guard.breaks for guard in GUARDS}) == len(GUARDS)


@pytest.fixture(scope="module")
def tree(kafka, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("mutants"), kafka.bootstrap)


@pytest.mark.mutants
@pytest.mark.timeout(3600)
def test_the_tests_pass_with_all_guards(tree: Tree) -> None:
    done = tree.run_tests(sorted({nodes(guard)[0] for guard in GUARDS}))
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.mutants
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.breaks.strip(".").replace(" ", "-"))
def test_a_test_fails_without_the_guard(tree: Tree, guard: Guard) -> None:
    tree.change(guard.file, guard.old, guard.new)
    try:
        done = tree.run_tests(nodes(guard))
    finally:
        tree.restore(guard.file)
    assert done.returncode == 1, f"{nodes(guard)} do not fail ({done.returncode})\n{done.stdout[-3000:]}"
