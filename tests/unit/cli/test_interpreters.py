"""--python: whatever a user calls the Python to train with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlejob.client.interpreters import find_interpreter
from paddlejob.errors import BadInput


def python(environment: Path, name: str = "python") -> str:
    path = environment / "bin" / name
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("CONDA_EXE", "MAMBA_ROOT_PREFIX", "CONDA_ENVS_PATH", "CONDA_ENVS_DIRS", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_program_is_found_on_the_path_or_by_its_path(home: Path):
    assert Path(find_interpreter("python3")).name == "python3"
    assert find_interpreter("") == ""


def test_a_directory_is_an_environment_or_a_project_of_uv(home: Path):
    environment, project = python(home / "env2"), python(home / "project" / ".venv")
    assert find_interpreter("env2") == find_interpreter(str(home / "env2")) == environment
    assert find_interpreter("~/project") == project
    (home / "empty").mkdir()
    with pytest.raises(BadInput, match=r"python empty has neither bin/python nor \.venv/bin/python"):
        find_interpreter("empty")


def test_conda_environments_are_found_by_name(home: Path, monkeypatch: pytest.MonkeyPatch):
    elsewhere = python(home / "large-disk" / "ernie")
    (home / ".conda").mkdir()
    (home / ".conda" / "environments.txt").write_text(f"{home / 'gone'}\n{home / 'large-disk' / 'ernie'}\n")
    assert find_interpreter("ernie") == elsewhere
    active = python(home / "conda" / "envs" / "paddle")
    monkeypatch.setenv("CONDA_EXE", str(home / "conda" / "bin" / "conda"))
    assert find_interpreter("paddle") == active, "that of the conda in use comes first"


def test_an_environment_comes_before_a_program_of_its_name(home: Path, monkeypatch: pytest.MonkeyPatch):
    program = home / "programs" / "paddle"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    assert find_interpreter("paddle") == str(program)
    assert find_interpreter("paddle") != (paddle := python(home / "miniforge3" / "envs" / "paddle"))
    assert find_interpreter("paddle") == paddle


def test_a_python_that_is_not_found_is_one_message_with_what_there_is(home: Path):
    with pytest.raises(BadInput, match="python ml: no such program, directory or environment; no conda is found"):
        find_interpreter("ml")
    python(home / "miniconda3" / "envs" / "paddle")
    with pytest.raises(BadInput, match="conda environments here: paddle"):
        find_interpreter("ml")


@pytest.mark.parametrize("root", ["miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba"])
def test_each_relative_of_conda_is_found_in_the_home_directory(home: Path, root: str):
    base, paddle = python(home / root), python(home / root / "envs" / "paddle")
    assert (find_interpreter("base"), find_interpreter("paddle")) == (base, paddle)


def test_environments_are_found_where_conda_was_told_to_keep_them(home: Path, monkeypatch: pytest.MonkeyPatch):
    one, two = python(home / "a" / "one"), python(home / "b" / "two")
    monkeypatch.setenv("CONDA_ENVS_PATH", f"{home / 'absent'}{os.pathsep}{os.pathsep}{home / 'a'}")
    monkeypatch.setenv("CONDA_ENVS_DIRS", str(home / "b"))
    assert (find_interpreter("one"), find_interpreter("two")) == (one, two)
    three = python(home / ".conda" / "envs" / "three")
    root = python(home / "mamba")
    monkeypatch.setenv("MAMBA_ROOT_PREFIX", str(home / "mamba"))
    assert (find_interpreter("three"), find_interpreter("base")) == (three, root)
    (home / "a" / "file").touch()
    assert python(home / "miniconda3" / "envs" / "one") and find_interpreter("one") == one, "the first of a name counts"


def test_a_program_that_is_no_python_is_only_run_by_its_path(home: Path):
    own = python(home / "own", "trainer")
    assert find_interpreter(own) == own
    assert find_interpreter("./own/bin/trainer") == "./own/bin/trainer"
    assert find_interpreter("env") != "" and Path(find_interpreter("env")).name == "env"


def test_of_several_pythons_of_uv_the_newest_is_taken(home: Path, monkeypatch: pytest.MonkeyPatch):
    pythons = [python(home / f"uv/cpython-3.99.{number}-linux", "python3") for number in (1, 2)]
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(home / "uv"))
    assert (find_interpreter("3.99"), find_interpreter("3.99.1")) == (pythons[1], pythons[0])
    monkeypatch.delenv("UV_PYTHON_INSTALL_DIR")
    default = python(home / ".local/share/uv/python/cpython-3.96.1-linux", "python3")
    assert find_interpreter("3.96") == default
    found = python(home / "data/uv/python/cpython-3.98.1-linux", "python3")
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert find_interpreter("3.98") == found
    (home / "uv/cpython-3.99.2-linux/bin/python3").unlink()
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(home / "uv"))
    assert find_interpreter("3.99") == pythons[0]
    on_path = python(home / "on-path", "python3.97")
    monkeypatch.setenv("PATH", str(home / "on-path" / "bin"), prepend=os.pathsep)
    assert find_interpreter("3.97") == on_path
    for text in ("3.x", "13.9", "3.97-"):
        with pytest.raises(BadInput, match="no such program, directory or environment"):
            find_interpreter(text)
