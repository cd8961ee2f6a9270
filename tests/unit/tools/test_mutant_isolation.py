"""`make mutants`: what a changed product does to the machine stays in its namespaces, and a test that hangs ends."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tools.mutants import isolation, tests
from tools.mutants.tests import notice

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, signal, sys
from pathlib import Path
from tools.mutants import isolation
isolation.enter(Path(sys.argv[1]))
Path(sys.argv[1], "inside").write_text(str(os.getpid()))
try:
    Path(sys.argv[2], "outside").write_text("")
except OSError as error:
    Path(sys.argv[1], "error").write_text(error.strerror)
try:
    os.kill(-1, signal.SIGKILL)  # all that this process can see but itself and process 1
except ProcessLookupError:
    pass
sys.exit(7)
"""


@pytest.fixture(autouse=True)
def isolated() -> None:
    if not isolation.is_available():
        pytest.skip("needs root and namespaces")


def test_a_mutant_kills_and_writes_only_what_is_its_own(tmp_path: Path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(inside), str(outside)], cwd=ROOT, check=False)
    assert done.returncode == 7
    assert int((inside / "inside").read_text()) < 10
    assert (inside / "error").read_text() == "Read-only file system"
    assert list(outside.iterdir()) == []


def project(root: Path, body: str) -> dict[str, float]:
    (root / "tests").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "tests" / "test_one.py").write_text(f"def test_one():\n    {body}\n")
    return {"tests/test_one.py::test_one": 0.0}


@pytest.mark.parametrize(("body", "noticed"), [("pass", False), ("assert False", True), ("while True: pass", True)])
def test_a_mutant_is_noticed_by_a_test_that_fails_or_never_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, noticed: bool
):
    monkeypatch.setattr(tests, "patience", lambda seconds: 3.0 if "while" in body else 120.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert notice(tmp_path / "r", project(tmp_path / "r", body)) is noticed
