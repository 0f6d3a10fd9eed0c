"""The bisection of tests/e2e/sink.py names the features that it takes to fail."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.e2e.sink import Feature, run_sink

FEATURES = [Feature(name) for name in "abcdefg"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (["c"], "fails with c: c is broken"), (["b", "g"], "fails with b; g: b, g are"), ([], None),
        (["a+f"], "fails with only together: a, b, c, d, e, f, g: a+f is broken"),
        (["b+c"], "fails with only together: b, c: b+c is"), (["a", "b+c"], "fails with a; only together: b, c: "),
        ([""], "fails with no feature: "),
    ],
)  # fmt: skip
def test_it_names_what_it_takes_to_fail(broken: list[str], message: str | None) -> None:
    runs: list[str] = []

    def run(chosen: Sequence[Feature]) -> None:
        names = {each.name for each in chosen}
        runs.append("".join(sorted(names)))
        found = [each for each in broken if {*each.split("+")} - {""} <= names]
        assert not found, f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} broken"

    if message is None:
        return run_sink(None, None, FEATURES, run=run)  # type: ignore[arg-type]
    with pytest.raises(AssertionError) as raised:
        run_sink(None, None, FEATURES, run=run)  # type: ignore[arg-type]
    assert message in str(raised.value)
    assert runs[0] == "abcdefg" and len(runs) <= 2 * len(FEATURES)
