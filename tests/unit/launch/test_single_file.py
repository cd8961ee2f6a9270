"""start_paddle.py is the launcher in one file, which also runs on old versions of Python."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import paddlejob.launch
from paddlejob.launch.single_file import MODULES, single_file

HERE = Path(paddlejob.launch.__file__).parent
MADE = HERE.parent / "examples" / "k8s_train" / "start_paddle.py"
SOURCES = sorted(HERE.glob("*.py"))
NEWER_THAN_3_8 = (
    ".removeprefix(", ".removesuffix(", "functools.cache", "is_relative_to", "zip(strict", "graphlib", "zoneinfo",
    "tomllib", "StrEnum", "contextlib.chdir", "root_dir=", "missing_ok", "with_stem", "pairwise", "bit_count",
)  # fmt: skip


def test_the_file_in_the_image_is_up_to_date():
    assert MADE.read_text() == single_file(), "run `make generate`"


def test_it_contains_every_module_of_the_launcher():
    left_out = {"__init__", "__main__", "single_file"}
    assert {path.stem for path in SOURCES} - left_out == set(MODULES)


@pytest.mark.parametrize(
    "source", [*(path for path in SOURCES if path.stem != "single_file"), MADE], ids=lambda p: p.stem
)
def test_it_uses_only_the_syntax_and_the_library_of_python_3_8(source: Path):
    text = source.read_text()
    tree = ast.parse(text, feature_version=(3, 8))
    assert not [word for word in NEWER_THAN_3_8 if word in text]
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for module in modules:
            own = module.startswith("paddlejob.launch") and source != MADE
            assert own or module.split(".")[0] in {*sys.stdlib_module_names, "__future__"}, module


def test_changing_the_system_clock_has_no_effect():
    """Only the monotonic clock is read."""
    assert not re.findall(r"\btime\.time\b|\bdatetime\b|\btime\.localtime\b", single_file())
    assert "time.monotonic()" in single_file()


def test_no_evaluated_expression_uses_the_type_syntax_of_newer_python():
    """`list[str]` and `int | None` are allowed only in annotations, which are not evaluated."""
    tree = ast.parse(single_file())
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    generics = {"list", "dict", "tuple", "set", "Callable", "Iterator", "SimpleQueue"}
    for node in _evaluated(tree):
        assert not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in generics)
        assert not (isinstance(node, ast.Call) and _is_check_against_union(node))


def _evaluated(tree: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                found += [child, *_evaluated(child)]
    return found


def _is_check_against_union(node: ast.Call) -> bool:
    return getattr(node.func, "id", "") == "isinstance" and isinstance(node.args[1], ast.BinOp)
