"""The small changes that can be made to a source file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
DELETABLE = (ast.AugAssign, ast.Delete, ast.Expr, ast.Raise, ast.Break, ast.Continue, ast.Return)
LOGGERS = {"log", "_log", "logger", "logging"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Change = tuple[ast.AST, str, str]
"""A node, the text that replaces it, and for a list or mapping what it then lacks."""


@dataclass(frozen=True)
class Mutation:
    """Lines and byte offsets are those of the original. `imported` code runs when the file is imported."""

    file: str
    first: int
    last: int
    start: int
    end: int
    before: str
    after: str
    lacks: str
    imported: bool

    @property
    def lines(self) -> set[tuple[str, int]]:
        return {(self.file, number) for number in range(self.first, self.last + 1)}

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        after = f"without `{_one_line(self.lacks)}`" if self.lacks else f"-> `{_one_line(self.after)}`"
        return f"{self.file}:{self.first}: `{_one_line(self.before)}` {after}"


def mutations(file: str, source: bytes) -> list[Mutation]:
    """Return every change that can be made to a file, from top to bottom."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {_mutation(file, source, starts, *one) for one in _changes(ast.parse(source))}
    return sorted(found, key=lambda one: (one.start, one.end, one.after))


def _mutation(file: str, source: bytes, starts: list[int], change: Change, imported: bool) -> Mutation:
    node, after, lacks = change
    spot = cast(ast.expr, node)
    last = spot.end_lineno or spot.lineno
    start, end = starts[spot.lineno - 1] + spot.col_offset, starts[last - 1] + (spot.end_col_offset or 0)
    return Mutation(file, spot.lineno, last, start, end, source[start:end].decode(), after, lacks, imported)


def _changes(node: ast.AST, imported: bool = True) -> Iterator[tuple[Change, bool]]:
    yield from ((change, imported) for change in _changes_of(node))
    for child in _children(node):
        yield from _changes(child, imported and not isinstance(node, FUNCTIONS))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that run, without type annotations."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            # Until Python 3.12, the positions of what an f-string contains are wrong.
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr) and not _is_exempt(child):
                yield child


def _is_exempt(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.Subscript(value=ast.Name(id="list" | "dict" | "tuple" | "set" | "Callable")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=float())) if name.isupper():
            return True  # a duration or a share: a little more of it is no defect
        case ast.Expr(value=ast.Constant() | ast.Await(value=ast.Constant())):
            return True  # a docstring
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in LOGGERS
    return False


def _changes_of(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare():
            yield from _flipped(node)
        case ast.BoolOp():
            yield from _without_an_operand(node)
        case ast.UnaryOp(op=ast.Not()):
            yield node, _text(node.operand), ""
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            yield node, repr(number + 1), ""
        case ast.List() | ast.Set() | ast.Tuple(ctx=ast.Load()):
            yield from _without_an_element(node)
        case ast.Dict():
            yield from _without_an_entry(node)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "pass", ""
    if isinstance(node, DELETABLE):
        yield node, "pass", ""
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield from _negated(node.test)
    if isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield from _negated(condition)


def _flipped(node: ast.Compare) -> Iterator[Change]:
    for at, op in enumerate(node.ops):
        ops = [*node.ops[:at], FLIPS[type(op)](), *node.ops[at + 1 :]]
        yield node, _text(ast.Compare(node.left, ops, node.comparators)), ""


def _without_an_operand(node: ast.BoolOp) -> Iterator[Change]:
    for at in range(len(node.values)):
        rest = node.values[:at] + node.values[at + 1 :]
        yield node, _text(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)), ""


def _without_an_element(node: ast.List | ast.Set | ast.Tuple) -> Iterator[Change]:
    for at, element in enumerate(node.elts):
        rest = node.elts[:at] + node.elts[at + 1 :]
        after = "set()" if isinstance(node, ast.Set) and not rest else _text(_like(node, rest))
        yield node, after, ast.unparse(element)


def _like(node: ast.List | ast.Set | ast.Tuple, elements: list[ast.expr]) -> ast.expr:
    return ast.Set(elements) if isinstance(node, ast.Set) else type(node)(elements, ast.Load())


def _without_an_entry(node: ast.Dict) -> Iterator[Change]:
    for at, key in enumerate(node.keys):
        rest = ast.Dict(node.keys[:at] + node.keys[at + 1 :], node.values[:at] + node.values[at + 1 :])
        yield node, _text(rest), ast.unparse(key or node.values[at])


def _negated(condition: ast.expr) -> Iterator[Change]:
    # `not x` becomes `x` and `a == b` becomes `a != b` elsewhere.
    if not isinstance(condition, (ast.UnaryOp, ast.Compare)):
        yield condition, f"(not {_text(condition)})", ""


def _text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if isinstance(node, (ast.Name, ast.Constant, ast.List, ast.Dict, ast.Set, ast.Tuple)) else f"({text})"


def _one_line(text: str) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= 80 else f"{joined[:50]} ... {joined[-25:]}"
