"""The arrows between rooms, and the purity of api and plan, checked by reading the imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import paddlejob

HOUSE = Path(paddlejob.__file__).parent
ARROWS = {
    "contract": set(),
    "errors": set(),
    "locks": set(),
    "api": {"contract", "errors"},
    "plan": {"api", "contract", "errors"},
    "engine": {"plan", "api", "contract", "errors"},
    "kube": {"errors"},
    "operator": {"kube", "engine", "plan", "api", "contract", "errors"},
    "local": {"engine", "plan", "api", "contract", "errors", "locks", "launch", "data"},
    "launch": {"contract", "errors"},
    "data": {"errors", "locks"},
    "cloud": {"errors"},
}
"""What each room may import. cli and web may import all; examples are programs of their own."""

PURE = ("api", "plan")
IMPURE_MODULES = {
    "asyncio", "concurrent", "io", "logging", "multiprocessing", "os", "pathlib", "random", "requests", "secrets",
    "shutil", "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid", "aiohttp",
}  # fmt: skip
IMPURE_CALLS = {"print", "open", "input", "now", "today", "utcnow"}


def sources(room: str) -> list[Path]:
    path = HOUSE / room
    return sorted(path.rglob("*.py")) if path.is_dir() else [HOUSE / f"{room}.py"]


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "paddlejob":
                yield from (f"paddlejob.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize(
    "room", [room for room in ARROWS if (HOUSE / room).exists() or (HOUSE / f"{room}.py").exists()]
)
def test_arrows_point_one_way(room: str):
    for path in sources(room):
        for module in imported(path):
            if module.startswith("paddlejob."):
                target = module.split(".")[1]
                assert target == room or target in ARROWS[room], f"{path.relative_to(HOUSE)} imports {module}"


@pytest.mark.parametrize("room", PURE)
def test_deciding_rooms_are_pure(room: str):
    for path in sources(room):
        where = path.relative_to(HOUSE)
        for module in imported(path):
            assert module.split(".")[0] not in IMPURE_MODULES, f"{where} imports {module}"
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                assert name not in IMPURE_CALLS, f"{where}:{node.lineno} calls {name}"


def test_local_and_kube_never_meet():
    assert "kube" not in ARROWS["local"]
    assert "local" not in ARROWS["kube"] | ARROWS["operator"]
