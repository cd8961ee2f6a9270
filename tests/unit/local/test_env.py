"""The environment that containers start with: the user's own, with the interpreter that the user chose."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paddlejob import contract
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.env import LONGEST_TEMPORARY, base_environment, temporary_notes
from paddlejob.local.state.store import JobStore
from tests.support.interpreters import interpreter

ASK = "import os; print(os.environ['CHOSEN'])"


def chosen(name: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [name, "-c", ASK], env=environment, capture_output=True, text=True, executable=which(environment, name)
    )
    return done.stdout.strip()


def which(environment: dict[str, str], name: str) -> str:
    folders = environment["PATH"].split(os.pathsep)
    return next(path for folder in folders if (path := f"{folder}/{name}") and Path(path).exists())


def passed(root: Path, python: str = "", **given: str) -> dict[str, str]:
    return base_environment(RunOptions(python=python, environment=given), JobStore(root))


def test_a_program_has_the_users_environment_without_that_of_another_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    another = {"PADDLE_TRAINER_ID": "7", "PADDLE_X": "x", "RANK": "1", "PADDLEJOB_POD_UID": "u"}
    found = passed(tmp_path, "/py/bin/python3", OWN="x", PATH="/own", **another, **{contract.ENV_UNBUFFERED: "0"})
    first, *rest = found.pop("PATH").split(os.pathsep)
    assert found == {"OWN": "x", "PYTHONUNBUFFERED": "1"}
    assert rest == ["/py/bin", "/own"]
    assert sorted(path.name for path in Path(first).iterdir() if os.access(path, os.X_OK)) == ["python", "python3"]
    assert passed(tmp_path, A="")["PATH"].endswith(os.defpath)
    monkeypatch.setenv("OF_THIS_PROCESS", "1")
    assert base_environment(RunOptions(), JobStore(tmp_path))["OF_THIS_PROCESS"] == "1"


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP"])
def test_a_directory_whose_sockets_would_be_too_long_is_not_passed_on(name: str, tmp_path: Path):
    """The path of a socket has at most 107 bytes, and multiprocessing adds 32 to the directory."""
    fits, long = "/" + "x" * 74, "/" + "x" * 75
    assert passed(tmp_path, **{name: fits})[name] == fits
    assert temporary_notes(RunOptions(environment={name: fits})) == []
    assert name not in passed(tmp_path, **{name: long})
    (note,) = temporary_notes(RunOptions(environment={name: long, "OTHER": long}))
    assert note.startswith(f"{name} has 76 characters, which is too long")
    assert f"at most {LONGEST_TEMPORARY} characters" in note


@pytest.mark.parametrize("folder", ["bin", 'a "quoted" $HOME'])
@pytest.mark.parametrize("name", ["python", "python3"])
def test_the_chosen_interpreter_runs_even_beside_others(name: str, folder: str, tmp_path: Path):
    for other in ("python", "python3"):
        interpreter(tmp_path / folder / other)
    options = RunOptions(python=interpreter(tmp_path / folder / "python3.9"))
    assert chosen(name, base_environment(options, JobStore(tmp_path / "state"))) == "python3.9"


def test_jobs_with_different_interpreters_do_not_disturb_each_other(tmp_path: Path):
    store = JobStore(tmp_path / "state")
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
    store = JobStore(tmp_path / "state")
    options = RunOptions(python=interpreter(tmp_path / "mine"))
    Path(which(base_environment(options, store), "python")).write_text("")
    assert chosen("python", base_environment(options, store)) == "mine"
