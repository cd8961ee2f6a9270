"""`make mutants`: which changes are made to a file, and which are not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tools.mutants.tests
from tools.mutants.__main__ import ROOT, measured_files
from tools.mutants.mutations import mutations


def changed(source: str) -> list[str]:
    return [mutation.apply(source.encode()).decode() for mutation in mutations("some.py", source.encode())]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["(a <= b)"]),
        ("a in b", ["(a not in b)"]),
        ("x = a and b", ["x = a", "x = b"]),
        ("x = not a", ["x = a"]),
        ("x = [a, b]", ["x = [a]", "x = [b]"]),
        ("x = {'a': b}", ["x = {}"]),
        ("x = {a}", ["x = set()"]),
        ("x = 4", ["x = 5"]),
        ("x.y = z", ["pass"]),
        ("if a:\n    b = c", ["if (not a):\n    b = c"]),
        ("[a for a in b if a]", ["[a for a in b if (not a)]"]),
    ],
)
def test_each_kind_of_change(source: str, expected: list[str]):
    assert set(expected) <= set(changed(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "x: tuple[int, str]",
        "def f(a: Literal[1]) -> Literal[2]:\n    pass",
        "__all__ = ['a', 'b']",
        "RETRY_SECONDS = 2.5",
        "log.info('a')",
        "if TYPE_CHECKING:\n    x = 1",
        "x = f'{a + 1}'",
    ],
)
def test_what_makes_no_difference_is_left_alone(source: str):
    assert changed(source) == []


def test_a_change_keeps_the_rest_of_the_file_also_beside_wide_characters():
    source = "名 = '宽'; x = (a ==\n     b)\ny = 2  # why\n"
    assert changed(source) == ["名 = '宽'; x = ((a != b))\ny = 2  # why\n", source.replace("y = 2", "y = 3")]


def test_every_mutant_of_the_tool_itself_is_a_program():
    source = Path(tools.mutants.tests.__file__).read_bytes()
    found = mutations("tests.py", source)
    assert len(found) > 50
    for mutation in found:
        ast.parse(mutation.apply(source))


def test_code_that_runs_at_import_is_marked():
    source = b"x = 1\ndef f():\n    return 2\n"
    assert {(mutation.before, mutation.imported) for mutation in mutations("some.py", source)} == {
        ("1", True),
        ("2", False),
        ("return 2", False),
    }


def test_the_commands_for_aws_are_measured_with_the_tests_that_run_them():
    folders = {package: {path.parent.name for path in measured_files(ROOT, package)} for package in ("cli", "cloud")}
    assert "aws" not in folders["cli"] and {"cli", "verbs", "run"} <= folders["cli"]
    assert {"aws", "cloud"} <= folders["cloud"]
    assert all(path.is_relative_to(ROOT / "src/paddlejob/plan") for path in measured_files(ROOT, "plan"))
