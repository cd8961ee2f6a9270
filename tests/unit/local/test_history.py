"""Former runs: what is kept of them, for how long, and that nothing secret is."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.client.settings import Settings, read_settings, settings_file
from paddlejob.errors import BadInput
from paddlejob.local.options import RunOptions
from paddlejob.local.state.history import NUMBER, History, names_with_history
from paddlejob.local.state.store import JobFolder, Store
from tests.support.builders import NOON, document

KEY = ("default", "mnist")


def run(store: Store, text: str = "output\n") -> JobFolder:
    """A run that has ended, with a log."""
    folder, lock = store.begin(document("mnist"), RunOptions(environment={"TOKEN": "secret"}), NOON)
    log = folder.log(1, "mnist-worker-0")
    log.parent.mkdir(parents=True)
    log.write_text(text)
    (folder.path / "pods").mkdir()
    (folder.path / "pods" / "large").write_text("of an emptyDir")
    lock.release()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def kept(store: Store) -> list[int]:
    return [run.number for run in History(store.root, KEY).runs()]


def test_a_run_of_the_same_name_keeps_the_logs_of_the_former(store: Store):
    folders = [run(store, f"run {number}\n") for number in (1, 2, 3)]
    assert folders[-1].log(1, "mnist-worker-0").read_text() == "run 3\n"
    history = History(store.root, KEY)
    assert history.number_of(folders[-1].path) == 3
    logs = [JobFolder(store.root, KEY, one.path).log(1, "mnist-worker-0").read_text() for one in history.runs()]
    assert logs == ["run 1\n", "run 2\n"]


def test_neither_the_environment_nor_volumes_of_a_former_run_are_kept(store: Store):
    run(store)
    run(store)
    (former,) = History(store.root, KEY).runs()
    names = {path.name for path in former.path.iterdir()}
    assert names == {"job.json", "status.json", "logs", NUMBER}
    assert not any(b"secret" in path.read_bytes() for path in former.path.rglob("*") if path.is_file())


def test_the_oldest_runs_go_first_beyond_a_number(store: Store):
    for _ in range(6):
        run(store)
    assert [one.number for one in History(store.root, KEY).trim(3, float("inf"))] == [1, 2]
    assert kept(store) == [3, 4, 5]


def test_the_oldest_runs_go_first_beyond_a_size(store: Store):
    for size in (10, 10, 200_000, 10, 10):
        run(store, "x" * size)
    assert [one.number for one in History(store.root, KEY).trim(10, 100_000)] == [1, 2, 3]
    assert kept(store) == [4]


def test_numbers_go_on_after_the_history_was_cleaned(store: Store):
    run(store)
    run(store)
    History(store.root, KEY).trim(0, 0)
    assert History(store.root, KEY).number_of(run(store).path) == 3


def test_a_job_of_an_earlier_version_has_the_number_after_its_history(store: Store):
    folder = run(store)
    (folder.path / NUMBER).unlink()
    assert History(store.root, KEY).number_of(folder.path) == 1
    run(store)
    assert kept(store) == [1]


def test_a_job_that_was_never_stored_whole_leaves_no_former_run(store: Store):
    folder = store.folder(KEY)
    folder.path.mkdir(parents=True)
    run(store)
    assert names_with_history(store.root) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("keep_runs = -1", "keep_runs: must be a number, 0 or more"),
        ("keep_runs = true", "keep_runs: must be a number, 0 or more"),
        ("keep_runs_size = '1GB'", "keep_runs_size: must be a size, such as '2Gi' or '500Mi'"),
        ("keep = 1", "keep: is not a setting; known are image, gpu_image, keep_runs, keep_runs_size"),
        ("image = 1", "image: must be text in quotes"),
    ],
)
def test_a_setting_that_is_wrong_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    settings_file().parent.mkdir()
    settings_file().write_text(text)
    with pytest.raises(BadInput) as caught:
        read_settings()
    assert str(caught.value) == f"{settings_file()}: {problem}"


def test_limits_are_set_in_the_file_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert read_settings() == Settings()
    settings_file().parent.mkdir()
    settings_file().write_text("keep_runs = 3\nkeep_runs_size = '500Mi'\n")
    assert (read_settings().keep_runs, read_settings().most_bytes) == (3, 500 * 2**20)
