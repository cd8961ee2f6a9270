"""The environment that containers start with: `python` and `python3` are the interpreter that the user chose."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.env import base_environment
from paddlejob.local.state.store import Store
from tests.support.interpreters import interpreter

ASK = "import os; print(os.environ['CHOSEN'])"


def chosen(name: str, environment: dict[str, str]) -> str:
    return subprocess.run(
        [name, "-c", ASK],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        executable=which(environment, name),
    ).stdout.strip()


def which(environment: dict[str, str], name: str) -> str:
    return next(
        path for folder in environment["PATH"].split(os.pathsep) if (path := f"{folder}/{name}") and Path(path).exists()
    )


@pytest.mark.parametrize("folder", ["bin", 'a "quoted" $HOME'])
@pytest.mark.parametrize("name", ["python", "python3"])
def test_the_chosen_interpreter_runs_even_beside_others(name: str, folder: str, tmp_path: Path):
    for other in ("python", "python3"):
        interpreter(tmp_path / folder / other)
    options = RunOptions(python=interpreter(tmp_path / folder / "python3.9"))
    assert chosen(name, base_environment(options, Store(tmp_path / "state"))) == "python3.9"


def test_jobs_with_different_interpreters_do_not_disturb_each_other(tmp_path: Path):
    store = Store(tmp_path / "state")
    names = ["one3", "two3"] * 8
    options = {name: RunOptions(python=interpreter(tmp_path / name)) for name in set(names)}
    started = {name: base_environment(options[name], store) for name in options}
    files = {name: Path(which(started[name], "python")).stat().st_ino for name in options}

    def one_worker(name: str) -> str:
        base_environment(options[name], store)
        return chosen("python", started[name])

    with ThreadPoolExecutor(8) as workers:
        assert list(workers.map(one_worker, names)) == names
    assert {name: Path(which(started[name], "python")).stat().st_ino for name in options} == files, "written again"


def test_a_damaged_interpreter_is_repaired_before_a_shell_can_take_it_for_a_program_that_succeeds(tmp_path: Path):
    store = Store(tmp_path / "state")
    options = RunOptions(python=interpreter(tmp_path / "mine"))
    Path(which(base_environment(options, store), "python")).write_text("")
    assert chosen("python", base_environment(options, store)) == "mine"
