"""Joins the launcher's modules into one file, for images that have Python but no paddlejob."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
MODULES = (
    "output", "settings", "group", "pod", "pods_api", "api_discovery", "discovery", "events", "rendezvous", "heartbeat",
    "processes", "workspace", "legacy_paddle", "fleet_paddle", "supervisor", "main",
)  # fmt: skip
"""Each module imports only from those before it."""
HEADER = '''#!/usr/bin/env python3
"""Starts a parameter server and a trainer in a pod of a Kubernetes Job.

Generated from paddlejob.launch by `make generate`; do not edit. Requires only Python 3.8 or newer.
"""

from __future__ import annotations

'''
FOOTER = """

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
        _check_unique_names(tree, module, names)
        bodies.append(_body(text, tree))
    imports = [f"import {name}" for name in sorted(plain)]
    imports += [_import_line(module, sorted(parts, key=_import_order)) for module, parts in sorted(named.items())]
    return HEADER + "\n".join(imports) + "\n\n" + "\n\n".join(bodies) + FOOTER


def _collect_imports(tree: ast.Module, plain: set[str], named: dict[str, set[str]]) -> None:
    for node in tree.body:
        if isinstance(node, ast.Import):
            plain |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not _is_own(node):
            named.setdefault(node.module, set()).update(alias.name for alias in node.names)


def _is_own(node: ast.ImportFrom) -> bool:
    return (node.module or "").startswith(("paddlejob", "__future__"))


def _check_unique_names(tree: ast.Module, module: str, names: dict[str, str]) -> None:
    """Raise if two modules define the same name: in one file the later definition would replace the earlier one."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined = [node.name]
        elif isinstance(node, ast.Assign):
            defined = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            defined = []
        for name in defined:
            if name in names:
                raise ValueError(f"{module}.py and {names[name]}.py both define {name}; rename one")
            names[name] = module


def _body(text: str, tree: ast.Module) -> str:
    """The module without its imports, and with its docstring as a comment."""
    lines = text.splitlines()
    first = next(node for node in tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom))
    decorators: list[ast.expr] = getattr(first, "decorator_list", [])
    begin = min([first.lineno, *(decorator.lineno for decorator in decorators)])
    comment = "\n".join(f"# {line}".rstrip() for line in (ast.get_docstring(tree) or "").splitlines())
    gap = "\n" if isinstance(first, ast.Assign) else "\n\n\n"
    return comment + gap + "\n".join(lines[begin - 1 :]) + "\n"


def _import_line(module: str, names: list[str]) -> str:
    return f"from {module} import {', '.join(names)}"


def _import_order(name: str) -> tuple[int, str]:
    """Constants, classes, then functions, as ruff sorts imports."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


if __name__ == "__main__":
    print(single_file(), end="")
