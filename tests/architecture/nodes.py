"""All nodes of a syntax tree, walked once for all tests that look at them."""

from __future__ import annotations

import ast
import functools


@functools.cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Of the tree of a file, which lives as long as the tests."""
    return tuple(ast.walk(tree))
