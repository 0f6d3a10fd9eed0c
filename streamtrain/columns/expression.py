"""Expressions of columns: arithmetic, comparisons, and, or, not, texts, `is missing`; compiled, never run as code.

The syntax is read by Python's own parser, of whose tree only what stands here is taken.
"""

from __future__ import annotations

import ast
import io
import math
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from streamtrain.registry import nearest

MOST_LETTERS, MOST_OPERATIONS, MOST_DEPTH = 4_000, 256, 100
MISSING = "missing"
NUMBER, TEXT = "number", "text"  # what a column holds that may stand in one
_ARITHMETIC = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}
FUNCTIONS = {  # by name: the operation, and how many arguments
    "abs": ("absolute", 1), "min": ("least", 2), "max": ("most", 2), "sqrt": ("root", 1), "floor": ("floor", 1),
    "log": ("log", 1), "exp": ("exp", 1), "otherwise": ("otherwise", 2),
}  # fmt: skip


class ExpressionError(ValueError):
    """An error that describes what is wrong with an expression."""


@dataclass(frozen=True)
class Operation:
    """`first` and `second`: operations before it; of what reads a column, its number; or a constant's or a text's."""

    code: str
    first: int = 0
    second: int = 0


@dataclass
class Program:
    """An expression compiled: the last operation's number is its value, 1 and 0 where it is a condition."""

    columns: tuple[str, ...]
    operations: list[Operation] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def _tree(text: str) -> ast.expr:
    if len(text) > MOST_LETTERS:
        raise ExpressionError(f"expected at most {MOST_LETTERS:,} characters, got {len(text):,}")
    try:
        found = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "too deep"
        raise ExpressionError(
            f"expected an expression such as a * b - c / d or a > 0 and b != 'x', got {text!r}: {reason}"
        ) from None
    kinds = [each.type for each in tokenize.generate_tokens(io.StringIO(text.strip()).readline)]
    if any(pair == (tokenize.STRING, tokenize.STRING) for pair in pairwise(kinds)):  # SQL's '' within a text
        raise ExpressionError(f"expected one text, got two side by side in {text!r}; write \"it's\" or 'it\\'s'")
    deepest, at = 0, [(1, found)]
    while at:
        depth, node = at.pop()
        deepest = max(deepest, depth)
        at += ((depth + 1, each) for each in ast.iter_child_nodes(node))  # type: ignore[misc]
    if deepest > MOST_DEPTH:
        raise ExpressionError(f"expected at most {MOST_DEPTH} within one another, got {deepest}")
    return found


def _column(node: ast.expr) -> str | None:
    """The column that a node names: a name, or names with dots between them."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _column(node.value)
        return None if before is None else f"{before}.{node.attr}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "column":
        given = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return given[0] if len(given) == len(node.args) == 1 and not node.keywords else None
    return None


def columns_of(text: str) -> list[str]:
    """The columns that an expression names, in the order in which they stand in it."""
    found: dict[str, None] = {}

    def walk(node: ast.AST) -> None:
        name = _column(node) if isinstance(node, ast.expr) else None
        if name is not None:
            if name != MISSING:
                found[name] = None
            return
        below = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
        for each in below:
            walk(each)

    walk(_tree(text))
    return list(found)


def compiled(text: str, holds: Mapping[str, str], condition: bool = False) -> Program:
    """The expression over columns of which `holds` says what each holds. ExpressionError with what is wrong."""
    compiler = _Compiler(columns_of(text), holds)
    found = compiler.value(_tree(text))
    if condition and not found.condition:
        raise ExpressionError(f"expected a condition, which is true or false, got the number {text!r}")
    return compiler.program


@dataclass(frozen=True)
class _Value:
    operation: int
    condition: bool = False


class _Compiler:
    def __init__(self, columns: Sequence[str], holds: Mapping[str, str]) -> None:
        self.program = Program(tuple(columns))
        self.holds = holds

    def add(self, code: str, first: int = 0, second: int = 0, *, condition: bool = False) -> _Value:
        if len(self.program.operations) == MOST_OPERATIONS:
            raise ExpressionError(f"expected at most {MOST_OPERATIONS} operations, got more")
        self.program.operations.append(Operation(code, first, second))
        return _Value(len(self.program.operations) - 1, condition)

    def column(self, name: str) -> tuple[int, str]:
        """Returns the column's number and what it holds."""
        if name not in self.holds:
            near = nearest(name, self.holds)
            raise ExpressionError(f"expected a column, got {name!r}" + (f"; did you mean {near!r}?" if near else ""))
        return self.program.columns.index(name), self.holds[name]

    def value(self, node: ast.expr) -> _Value:
        match node:
            case ast.Constant(value=float() | int()) if type(node.value) in (int, float):
                return self.constant(node.value)  # type: ignore[arg-type]
            case ast.Constant(value=str()):
                raise ExpressionError(f"expected a number, got the text {_format_node(node)}")
            case ast.UnaryOp(op=ast.USub()):
                return self.add("negate", self.value(node.operand).operation)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.value(node.operand)
            case ast.UnaryOp(op=ast.Not()):
                return self.add("opposite", self.condition(node.operand).operation, condition=True)
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                left, right = self.value(node.left), self.value(node.right)
                return self.add(_ARITHMETIC[type(node.op)], left.operation, right.operation)
            case ast.BoolOp():
                code = "both" if isinstance(node.op, ast.And) else "either"
                return self.together(code, [self.condition(each) for each in node.values])
            case ast.Compare():
                sides = [node.left, *node.comparators]
                pairs = zip(sides, node.ops, sides[1:], strict=False)
                return self.together("both", [self.comparison(*each) for each in pairs])
        if (name := _column(node)) is not None:
            return self.named(name)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.call(node.func.id, node)
        raise ExpressionError(
            f"expected columns, numbers, + - * /, comparisons, and, or, not, got {_format_node(node)}"
        )

    def constant(self, value: float) -> _Value:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ExpressionError(f"expected a finite number, got {value}")
        self.program.numbers.append(number)
        return self.add("constant", len(self.program.numbers) - 1)

    def named(self, name: str) -> _Value:
        number, holds = self.column(name)
        if holds != NUMBER:
            hint = "; compare it with == or in" if holds == TEXT else ""
            raise ExpressionError(f"expected a number, got {name}, which holds a {holds}{hint}")
        return self.add("number", number)

    def call(self, name: str, node: ast.Call) -> _Value:
        if name not in FUNCTIONS:
            near = nearest(name, FUNCTIONS)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ExpressionError(f"expected a function among {', '.join(FUNCTIONS)}, got {name!r}{hint}")
        code, count = FUNCTIONS[name]
        if len(node.args) != count or node.keywords:
            raise ExpressionError(f"expected {count} arguments of {name}, got {_format_node(node)}")
        given = [self.value(each).operation for each in node.args]
        return self.add(code, given[0], given[-1] if count > 1 else 0)

    def condition(self, node: ast.expr) -> _Value:
        found = self.value(node)
        if not found.condition:
            raise ExpressionError(f"expected a condition, which is true or false, got {_format_node(node)}")
        return found

    def together(self, code: str, values: Sequence[_Value]) -> _Value:
        found = values[0]
        for each in values[1:]:
            found = self.add(code, found.operation, each.operation, condition=True)
        return found

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Value:
        if isinstance(op, ast.Is | ast.IsNot):
            name = _column(left)
            if name is None or _column(right) != MISSING:
                raise ExpressionError(f"expected a column that is or is not missing, got {_format_node(left)}")
            given = self.add("given", self.column(name)[0], condition=True)
            return given if isinstance(op, ast.IsNot) else self.add("opposite", given.operation, condition=True)
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List) or not right.elts:
                raise ExpressionError(f"expected values in parentheses behind in, got {_format_node(right)}")
            among = self.together("either", [self.equality(left, each) for each in right.elts])
            return among if isinstance(op, ast.In) else self.add("opposite", among.operation, condition=True)
        if isinstance(op, ast.Eq | ast.NotEq):
            same = self.equality(left, right)
            return same if isinstance(op, ast.Eq) else self.add("opposite", same.operation, condition=True)
        turned = isinstance(op, ast.Gt | ast.GtE)
        one, other = (self.value(each).operation for each in ((right, left) if turned else (left, right)))
        return self.add("less" if isinstance(op, ast.Lt | ast.Gt) else "less_equal", one, other, condition=True)

    def equality(self, left: ast.expr, right: ast.expr) -> _Value:
        texts = [(self._text(each), other) for each, other in ((right, left), (left, right))]
        for text, other in texts:
            if isinstance(text, str):
                return self.add("text_is", self._text_column(other), self._kept(text), condition=True)
        if all(isinstance(text, int) for text, _ in texts):
            return self.add("same_text", self._text_column(left), self._text_column(right), condition=True)
        return self.add("equal", self.value(left).operation, self.value(right).operation, condition=True)

    def _text(self, node: ast.expr) -> str | int | None:
        """A text, the number of a column that holds texts, or neither."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        name = _column(node)
        number, holds = (0, "") if name is None or name == MISSING else self.column(name)
        return number if holds == TEXT else None

    def _text_column(self, node: ast.expr) -> int:
        found = self._text(node)
        if not isinstance(found, int):
            raise ExpressionError(f"expected a column that holds a text beside a text, got {_format_node(node)}")
        return found

    def _kept(self, text: str) -> int:
        self.program.texts.append(text)
        return len(self.program.texts) - 1


def _format_node(node: ast.expr) -> str:
    return ast.unparse(node)[:60]


def problems(text: str, holds: Mapping[str, str], condition: bool = False) -> Iterator[str]:
    """Yields what is wrong with an expression; nothing if it is valid."""
    try:
        compiled(text, holds, condition)
    except ExpressionError as error:
        yield str(error)
