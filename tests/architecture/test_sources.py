"""Collects the tests of syntax trees in one file, so that one process of a run parses the sources."""

from __future__ import annotations

from tests.architecture import imports, lists, shipped, size

for _module in (imports, lists, shipped, size):
    globals().update({name: test for name, test in vars(_module).items() if name.startswith("test_")})
