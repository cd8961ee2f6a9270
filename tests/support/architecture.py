"""Rules about imports, checked by reading the sources of a package."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

Arrows = Mapping[str, set[str]]
IMPURE_CALLS = {
    "__import__", "eval", "exec", "input", "now", "open", "print", "read_bytes", "read_text", "today", "utcnow",
    "write_bytes", "write_text",
}  # fmt: skip


def sources(root: Path, part: str) -> list[Path]:
    """The files of a package, or of a single module, below `root`."""
    path = root / part.replace(".", "/")
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def imports(root: Path, path: Path, *, at_run_time: bool = False) -> Iterator[str]:
    """Everything that a file imports, by its absolute dotted name; `root` is the directory of the top package."""
    package = (root.name, *path.relative_to(root).parent.parts)
    tree = ast.parse(path.read_text())
    if at_run_time:
        tree.body = [node for node in tree.body if not (isinstance(node, ast.If) and _is_for_types(node))]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            base += [node.module] if node.module else []
            yield from (".".join([*base, alias.name]) for alias in node.names)


def _is_for_types(node: ast.If) -> bool:
    return ast.unparse(node.test) == "TYPE_CHECKING"


def arrows_of(root: Path, part: str) -> dict[str, str]:
    """The parts of the top package that `part` imports, and one file and import that does so."""
    found = {}
    for path in sources(root, part):
        for name in imports(root, path):
            top, _, rest = name.partition(".")
            target = rest.partition(".")[0]
            if top == root.name and target not in ("", part):
                found[target] = f"{path.relative_to(root)} imports {name}"
    return found


def forbidden_arrows(root: Path, arrows: Arrows) -> list[str]:
    return [
        text
        for part, allowed in arrows.items()
        for target, text in arrows_of(root, part).items()
        if target not in allowed
    ]


def unused_arrows(root: Path, arrows: Arrows) -> list[str]:
    return [f"{part} -> {target}" for part in arrows for target in sorted(arrows[part] - arrows_of(root, part).keys())]


def impurities(root: Path, part: str, allowed: set[str]) -> list[str]:
    """Imports outside the allow-list, and calls that do I/O or ask for the time."""
    found = []
    for path in sources(root, part):
        where = path.relative_to(root)
        outside = (name for name in imports(root, path) if name.partition(".")[0] != root.name)
        found += [f"{where} imports {name}" for name in outside if name.partition(".")[0] not in allowed]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                found += [f"{where}:{node.lineno} calls {name}"] if name in IMPURE_CALLS else []
    return found


def beyond_the_standard_library(root: Path, part: str) -> list[str]:
    """Third-party imports of a package, also those of modules of ours that it imports."""
    found, seen, ahead = [], set[Path](), sources(root, part)
    while ahead:
        path = ahead.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imports(root, path, at_run_time=True):
            top = name.partition(".")[0]
            if top == root.name:
                ahead += _modules(root, name)
            elif top not in sys.stdlib_module_names:
                found.append(f"{path.relative_to(root)} imports {name}")
    return found


def _modules(root: Path, name: str) -> list[Path]:
    """The files that an import of this name runs: those of its packages, and its own."""
    steps = name.split(".")[1:]
    candidates = [root / "__init__.py"]
    for depth in range(1, len(steps) + 1):
        base = root.joinpath(*steps[:depth])
        candidates += [base / "__init__.py", base.with_suffix(".py")]
    return [path for path in candidates if path.exists()]
