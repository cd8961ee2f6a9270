"""The agent and its hook run on the Python of the image, which may be older or newer than that of paddlejob."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agent_stage import pod
from tests.support.interpreters import installed

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
PROGRAM = """import os, time
def hang():
    time.sleep(100)
if "AGAIN" not in os.environ:
    raise SystemExit(3)
hang()
"""


def python(version: str) -> str:
    found = installed(version)
    if not found:
        pytest.skip(f"Python {version} is not installed; run `pyenv install {version}`")
    return str(found)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_program_restarts_in_place_shows_its_stack_and_stops(version: str, tmp_path: Path):
    (tmp_path / "train.py").write_text(PROGRAM)
    with pod(tmp_path / "agent", python(version)) as led:
        operator = led.connect()
        running = led.run(led.python, str(tmp_path / "train.py"))
        operator.heard(state="exited", exitStatus=3)
        operator.say(order="start", attempt=2, environment={"AGAIN": "1"})
        operator.heard(state="running", attempt=2)
        operator.stack_with("in hang")
        operator.say(order="stop", attempt=3, graceSeconds=5)
        operator.heard(state="stopped", exitStatus=143)
        operator.say(order="release")
        assert running.wait(20) == 143
        assert running.communicate()[1] == b""


def test_a_python_that_is_too_old_for_the_agent_runs_the_program_without(tmp_path: Path):
    with pod(tmp_path / "agent", python("3.7")) as led:
        running = led.run("bash", "-c", "echo $$; exit 3")
        assert running.communicate(timeout=20) == (f"{running.pid}\n".encode(), b"")
        assert running.returncode == 3
