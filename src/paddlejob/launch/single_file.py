"""Puts the launcher together into one file, for images that have Python but no paddlejob."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
MODULES = (
    "words", "settings", "group", "pod", "pods_api", "by_api", "finding", "events", "meeting", "link",
    "processes", "workspace", "paddle_2016", "paddle_today", "run", "main",
)  # fmt: skip
"""In an order in which each needs only those before it."""
HEAD = '''#!/usr/bin/env python3
"""Starts a parameter server and a trainer in a pod of a Kubernetes Job.

Generated from paddlejob.launch by `make generate`; do not edit. Needs Python 3.8 or newer, nothing else.
"""

from __future__ import annotations

'''
TAIL = """

if __name__ == "__main__":
    sys.exit(main())
"""


def single_file() -> str:
    """The text of start_paddle.py."""
    plain: set[str] = set()
    named: dict[str, set[str]] = {}
    bodies = []
    names: dict[str, str] = {}
    for module in MODULES:
        text = (HERE / f"{module}.py").read_text(encoding="utf-8")
        tree = ast.parse(text)
        _collect_imports(tree, plain, named)
        _refuse_same_names(tree, module, names)
        bodies.append(_body(text, tree))
    imports = [f"import {name}" for name in sorted(plain)]
    imports += [_from(module, sorted(parts, key=_by_kind)) for module, parts in sorted(named.items())]
    return HEAD + "\n".join(imports) + "\n\n" + "\n\n".join(bodies) + TAIL


def _collect_imports(tree: ast.Module, plain: set[str], named: dict[str, set[str]]) -> None:
    for node in tree.body:
        if isinstance(node, ast.Import):
            plain |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not _is_own(node):
            named.setdefault(node.module, set()).update(alias.name for alias in node.names)


def _is_own(node: ast.ImportFrom) -> bool:
    return (node.module or "").startswith(("paddlejob", "__future__"))


def _refuse_same_names(tree: ast.Module, module: str, names: dict[str, str]) -> None:
    """In one file, a name that two modules give to different things would be the later one's for both."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found = [node.name]
        elif isinstance(node, ast.Assign):
            found = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            found = []
        for name in found:
            if name in names:
                raise ValueError(f"{module}.py and {names[name]}.py both define {name}; rename one")
            names[name] = module


def _body(text: str, tree: ast.Module) -> str:
    """The module without docstring and imports; the docstring stands above it as a comment."""
    lines = text.splitlines()
    first = next(node for node in tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom))
    decorators: list[ast.expr] = getattr(first, "decorator_list", [])
    begin = min([first.lineno, *(one.lineno for one in decorators)])
    note = "\n".join(f"# {line}".rstrip() for line in (ast.get_docstring(tree) or "").splitlines())
    gap = "\n" if isinstance(first, ast.Assign) else "\n\n\n"
    return note + gap + "\n".join(lines[begin - 1 :]) + "\n"


def _from(module: str, names: list[str]) -> str:
    return f"from {module} import {', '.join(names)}"


def _by_kind(name: str) -> tuple[int, str]:
    """Constants, classes, then the rest, as the repository sorts its imports."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


if __name__ == "__main__":
    print(single_file(), end="")
