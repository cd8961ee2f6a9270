"""How a user wants a job to run: the interpreter, directories of images and volumes, objects of the same file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.state.files import DamagedFile
from paddlejob.local.state.store import JobStore
from tests.support.builders import NOON, document


@pytest.mark.parametrize(
    ("option", "active", "expected"),
    [
        ("", None, sys.executable),
        ("", "/envs/mine", "/envs/mine/bin/python"),
        ("/usr/bin/python3", None, "/usr/bin/python3"),
        ("/usr/bin/python3", "/envs/mine", "/usr/bin/python3"),
    ],
)
def test_the_interpreter_is_the_users_else_that_of_the_active_environment_else_ours(
    option: str, active: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
):
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    if active:
        monkeypatch.setenv("VIRTUAL_ENV", active)
    assert RunOptions(python=option).interpreter == expected


@pytest.mark.parametrize(
    ("name", "path", "active", "expected"),
    [
        ("paddle", "{conda}/bin:/usr/bin", None, "{conda}"),
        ("paddle", "{conda}/bin:{venv}/bin", "{venv}", "{conda}"),
        ("paddle", "{venv}/bin:{conda}/bin", "{venv}", "{venv}"),
        ("paddle", "/usr/bin", "{venv}", "{venv}"),
        ("base", "{conda}/bin:/usr/bin", None, ""),
        ("base", "{conda}/bin:{venv}/bin", "{venv}", "{venv}"),
        ("without-python", "{conda}/bin", None, ""),
    ],
)
def test_of_conda_and_virtual_environments_the_last_activated_counts_and_base_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, path: str, active: str | None, expected: str
):
    places = {"conda": str(tmp_path / "conda"), "venv": str(tmp_path / "venv")}
    (tmp_path / "conda" / "bin").mkdir(parents=True)
    if name != "without-python":
        (tmp_path / "conda" / "bin" / "python").touch()
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setenv("CONDA_PREFIX", places["conda"])
    monkeypatch.setenv("CONDA_DEFAULT_ENV", name)
    monkeypatch.setenv("PATH", path.format(**places))
    if active:
        monkeypatch.setenv("VIRTUAL_ENV", active.format(**places))
    wanted = f"{expected.format(**places)}/bin/python" if expected else sys.executable
    assert RunOptions().interpreter == wanted


def test_only_absolute_names_of_volumes_are_paths_of_this_machine():
    options = RunOptions(volumes={"data": "/tmp/data", "/mnt/nfs": "/tmp/nfs", "server:/export": "/tmp/e"})
    assert options.host_paths == {"/mnt/nfs": "/tmp/nfs"}


def test_an_object_is_found_by_kind_and_name():
    secret, config = ({"kind": kind, "metadata": {"name": "a"}} for kind in ("Secret", "ConfigMap"))
    options = RunOptions(objects=(secret, config))
    assert options.object("ConfigMap", "a") is config
    assert options.object("ConfigMap", "b") is options.object("Volume", "a") is None


def test_options_are_read_as_they_were_written():
    options = RunOptions(
        "/job", {"i": {"directory": "/d"}}, {"v": "/w"}, "/python", True, {"HOME": "/me"}, ({"kind": "Secret"},)
    )
    assert RunOptions.from_json(json.loads(json.dumps(options.to_json()))) == options
    assert RunOptions.from_json(None) == RunOptions()


@pytest.mark.parametrize("content", ["[1]", '{"unknown": 1}', '"text"', "{"])
def test_damaged_options_are_named(tmp_path: Path, content: str):
    folder, lock = JobStore(tmp_path).begin(document(), RunOptions(), NOON)
    (folder.path / "run.json").write_text(content)
    with pytest.raises(DamagedFile, match=r"run\.json is damaged"):
        folder.options()
    lock.release()
