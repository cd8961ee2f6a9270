"""How a user wants a job to run, and the small files that several processes share."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path

import pytest

from paddlejob.local.options import RunOptions
from paddlejob.local.state.files import PADDED_SIZE, DamagedFile, read_json, write_json


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
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    if active:
        monkeypatch.setenv("VIRTUAL_ENV", active)
    assert RunOptions(python=option).interpreter == expected


def test_only_absolute_names_of_volumes_are_paths_of_this_machine():
    options = RunOptions(volumes={"data": "/tmp/data", "/mnt/nfs": "/tmp/nfs", "server:/export": "/tmp/e"})
    assert options.host_paths == {"/mnt/nfs": "/tmp/nfs"}


def test_an_object_is_found_by_kind_and_name():
    secret = {"kind": "Secret", "metadata": {"name": "a"}}
    config = {"kind": "ConfigMap", "metadata": {"name": "a"}}
    options = RunOptions(objects=(secret, config))
    assert options.object("ConfigMap", "a") is config
    assert options.object("ConfigMap", "b") is None
    assert options.object("Volume", "a") is None


def test_options_are_read_as_they_were_written():
    options = RunOptions(
        "/job", {"i": {"directory": "/d"}}, {"v": "/w"}, "/python", True, {"HOME": "/me"}, ({"kind": "Secret"},)
    )
    assert RunOptions.from_json(json.loads(json.dumps(options.to_json()))) == options
    assert RunOptions.from_json(None) == RunOptions()


def test_a_file_is_replaced_as_a_whole_and_nothing_else_stays(tmp_path: Path):
    path = tmp_path / "a.json"
    assert read_json(path) is None
    write_json(path, {"name": "宽"})
    write_json(path, {"name": "深"})
    assert read_json(path) == {"name": "深"}
    assert "深" in path.read_text()
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_a_padded_file_can_be_overwritten_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.json"
    write_json(path, {"round": 1}, padded=True)
    assert path.stat().st_size == PADDED_SIZE + 1

    def full(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    write_json(path, {"round": 2}, padded=True)
    assert read_json(path) == {"round": 2}
    with pytest.raises(OSError, match="no space"):
        write_json(path, {"round": 3})
    assert read_json(path) == {"round": 2}
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_another_error_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.json"
    write_json(path, 1, padded=True)

    def rejected(self: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, "permission denied")

    monkeypatch.setattr(Path, "replace", rejected)
    with pytest.raises(PermissionError):
        write_json(path, 2, padded=True)
    assert read_json(path) == 1


def test_a_file_that_stays_unreadable_is_an_error(tmp_path: Path):
    path = tmp_path / "a.json"
    path.write_text("{")
    with pytest.raises(DamagedFile):
        read_json(path)
