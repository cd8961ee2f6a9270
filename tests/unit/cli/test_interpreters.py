"""--python: whatever a user calls the Python to train with."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.client.interpreters import find_interpreter
from paddlejob.errors import BadInput


def python(environment: Path) -> str:
    path = environment / "bin" / "python"
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
    own = python(home / "own")
    assert find_interpreter(own) == own
    assert find_interpreter("") == ""


def test_a_directory_is_an_environment_or_a_project_of_uv(home: Path):
    environment, project = python(home / "env2"), python(home / "project" / ".venv")
    assert find_interpreter("env2") == find_interpreter(str(home / "env2")) == environment
    assert find_interpreter("~/project") == project
    (home / "empty").mkdir()
    with pytest.raises(BadInput, match=r"--python empty: has neither bin/python nor \.venv/bin/python"):
        find_interpreter("empty")


def test_conda_environments_are_found_by_name(home: Path, monkeypatch: pytest.MonkeyPatch):
    base, paddle = python(home / "miniconda3"), python(home / "miniconda3" / "envs" / "paddle")
    assert find_interpreter("paddle") == paddle
    assert find_interpreter("base") == base
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


def test_a_python_of_uv_is_found_by_its_version(home: Path):
    found = home / ".local/share/uv/python/cpython-3.99.1-linux-x86_64-gnu"
    python(found)
    (found / "bin" / "python").rename(found / "bin" / "python3")
    assert find_interpreter("3.99") == str(found / "bin" / "python3")


def test_a_python_that_is_not_found_is_one_message_with_what_there_is(home: Path):
    with pytest.raises(BadInput, match="--python ml: no such program, directory or environment; no conda is found"):
        find_interpreter("ml")
    python(home / "miniconda3" / "envs" / "paddle")
    with pytest.raises(BadInput, match="conda environments here: paddle"):
        find_interpreter("ml")
