"""The tree in the docstring of errors.py is the tree of the classes."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import paddlejob
from paddlejob import errors

ROOT = Path(paddlejob.__file__).parent
Class = tuple[str, str]
"""The package of an exception, and its name."""


def classes() -> dict[Class, set[str]]:
    """Public classes outside of the examples, and the names of their bases."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part == "examples":
            continue
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "class " in text else ():
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[part, node.name] = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    return found


def exceptions() -> dict[Class, str]:
    """Every public exception, and the exception it derives from."""
    every = classes()
    names = {name for name, value in vars(builtins).items() if isinstance(value, type)}
    known = {name for name in names if issubclass(getattr(builtins, name), BaseException)}
    found: dict[Class, str] = {}
    while new := {one: (bases & known).pop() for one, bases in every.items() if bases & known and one not in found}:
        found |= new
        known |= {name for _, name in new}
    return found


def drawn_tree() -> dict[str, str]:
    """Each class of the drawing, and the one that it hangs from."""
    found, path = {}, list[str]()
    for line in (errors.__doc__ or "").splitlines():
        if node := re.match(r"([│ ]*[├└]── )?(\w+)(?:   .*)?$", line):
            depth = len(node[1] or "") // 4
            path = [*path[:depth], node[2]]
            found[node[2]] = path[-2] if depth else "Exception"
    return found


def listed() -> dict[Class, str]:
    lines = re.findall(r"^(\w+) +(\w+(?:, \w+)*)$", errors.__doc__ or "", re.MULTILINE)
    return {(part, name): "Exception" for part, names in lines for name in names.split(", ")}


def test_every_exception_is_drawn_or_listed_where_it_belongs():
    in_tree = {name: parent for (_, name), parent in exceptions().items() if parent != "Exception"}
    assert {name: parent for name, parent in drawn_tree().items() if parent != "Exception"} == in_tree
    alone = {one: parent for one, parent in exceptions().items() if parent == "Exception"}
    assert listed() | {("errors", "PaddleJobError"): "Exception"} == alone
