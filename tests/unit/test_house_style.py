"""Tests use what callers use, nothing private, and their files are named after behaviour."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
OURS = ("paddlejob", "testbed", "tools", "bench")
PUBLIC_ALL_THE_SAME = {"_replace", "_exit", "_fields_", "_repr_html_", "_protected_args"}
"""Of named tuples, os, ctypes, notebooks, and of Click, which has no other name for it."""
ORDERED_BY_MUTANT = ("_in_detail", "_bounds", "_edges", "_limits")
FOREIGN = {"aws/answers.py", "aws/moto_stacks.py", "aws/requests_made.py", "aws/speedups.py"}
"""They fill gaps of moto and botocore, which have no options for it."""
STILL_PRIVATE = {
    "aws/test_error_codes.py",
    "aws/test_zones.py",
}
STILL_ORDERED_BY_MUTANT = set[str]()
"""Lists that only get shorter."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC_ALL_THE_SAME


def private_uses(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] in OURS:
                yield from (f"{node.lineno} imports {one.name}" for one in names if is_private(one.name))
            case (
                ast.Attribute(value=ast.Name(id="self" | "cls")) | ast.Attribute(value=ast.Call(func=ast.Name("super")))
            ):
                continue
            case ast.Attribute(attr=name) if is_private(name):
                yield f"{node.lineno} uses {name}"
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr"), args=[ast.Constant(str(path)), *_]):
                yield from [f"{node.lineno} replaces {path}"] * is_private(path.rpartition(".")[2])
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr"), args=[_, ast.Constant(str(name)), *_]):
                yield from [f"{node.lineno} replaces {name}"] * is_private(name)


def test_no_test_touches_what_is_private():
    found = {str(path.relative_to(TESTS)): list(private_uses(path.read_text())) for path in TESTS.rglob("*.py")}
    assert {file: uses for file, uses in found.items() if uses and file not in STILL_PRIVATE | FOREIGN} == {}


def test_files_are_named_after_behaviour():
    found = {str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if path.stem.endswith(ORDERED_BY_MUTANT)}
    assert found <= STILL_ORDERED_BY_MUTANT


@pytest.mark.parametrize(
    ("line", "uses"),
    [
        ("from paddlejob.api.validate import _faults", ["1 imports _faults"]),
        ("from hypothesis import _settings", []),
        ("queue._due", ["1 uses _due"]),
        ("self._due + cls._due + super()._due() + usage._replace(free=0) + x.__class__", []),
        (
            "monkeypatch.setattr('paddlejob.launch.discovery._resolve', f)",
            ["1 replaces paddlejob.launch.discovery._resolve"],
        ),
        ("monkeypatch.setattr(proc, '_read', f)", ["1 replaces _read"]),
        ("monkeypatch.setattr(proc, 'read', f)", []),
    ],
)
def test_a_private_name_is_found_however_it_is_used(line: str, uses: list[str]):
    assert list(private_uses(line)) == uses
