"""The directory that a pod trains in."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from paddlejob.launch.output import LaunchError
from paddlejob.launch.settings import Settings, read_settings
from paddlejob.launch.workspace import workspace
from tests.unit.launch.documents import ENVIRON


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "scratch"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    found = read_settings(dict(ENVIRON, JOB_PATH=str(tmp_path)), [])
    for part in (0, 1, 2, 10):
        found.data_dir(part).mkdir(parents=True)
        for name in ("a", "b"):
            (found.data_dir(part) / name).write_text(f"{part} {name}")
    (found.config / "data").mkdir(parents=True)
    (found.config / "data" / "sample").touch()
    (found.config / "trainer_config.py").write_text("config")
    return found


def test_the_program_is_there_and_the_pods_own_part_of_the_data(settings: Settings, scratch: Path):
    with workspace(settings, 10) as directory:
        assert {path.name for path in directory.iterdir()} == {"trainer_config.py", "data"}
        assert {path.name: path.read_text() for path in (directory / "data").iterdir()} == {"a": "10 a", "b": "10 b"}
        (directory / "data" / "a").write_text("changed")
    assert list(scratch.iterdir()) == [], "nothing is left"
    assert (settings.data_dir(10) / "a").read_text() == "10 a", "the volume is only read"


def test_a_server_of_an_operator_gets_no_part(settings: Settings, scratch: Path):
    with workspace(settings, None) as directory:
        assert [path.name for path in (directory / "data").iterdir()] == ["sample"]


def test_a_missing_part_is_reported_with_the_existing_ones(settings: Settings, scratch: Path):
    wanted = r"3/data: no data for trainer 3; found parts 0, 1, 2, 10\. Split .*SPLIT_COUNT=3"
    with pytest.raises(LaunchError, match=wanted), workspace(settings, 3):
        pass
    assert list(scratch.iterdir()) == []


def test_copying_can_be_cancelled_between_two_files(settings: Settings, scratch: Path):
    copied: list[int] = []

    def before_each_file() -> None:
        copied.append(1)
        if len(copied) == 3:
            raise LaunchError("trainer 1 is lost", 75)

    with pytest.raises(LaunchError, match="is lost"), workspace(settings, 0, before_each_file):
        raise AssertionError("the second file of the data is not copied")
    assert list(scratch.iterdir()) == []


def test_a_container_without_a_temporary_directory_is_an_error(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    wanted = "nowhere: cannot create a working directory"
    with pytest.raises(LaunchError, match=wanted), workspace(settings, 0):
        pass


def test_a_file_that_cannot_be_copied_is_named(settings: Settings, scratch: Path):
    (settings.data_dir(0) / "dangling").symlink_to("/nowhere")
    wanted = r"0/data: cannot copy to \S+: \[Errno 2\] .*0/data/dangling'$"
    with pytest.raises(LaunchError, match=wanted), workspace(settings, 0):
        pass
