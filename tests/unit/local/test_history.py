"""Previous runs: what is kept of them, for how long, and that nothing secret is."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.client.settings import Settings, read_settings, settings_file
from paddlejob.errors import BadInput
from paddlejob.local.options import RunOptions
from paddlejob.local.state.history import KEPT, NUMBER, History, PreviousRun, names_with_history, size_of
from paddlejob.local.state.store import JobFolder, JobStore
from tests.support.builders import NOON, document

KEY = ("default", "mnist")


def run(store: JobStore, text: str = "output\n") -> JobFolder:
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
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path)


def test_a_run_of_the_same_name_keeps_the_logs_of_the_previous_one(store: JobStore):
    folders = [run(store, f"run {number}\n") for number in (1, 2, 3)]
    assert folders[-1].log(1, "mnist-worker-0").read_text() == "run 3\n"
    history = History(store.root, KEY)
    assert history.number_of(folders[-1].path) == 3
    logs = [JobFolder(store.root, KEY, one.path).log(1, "mnist-worker-0").read_text() for one in history.runs()]
    assert logs == ["run 1\n", "run 2\n"]


def test_neither_the_environment_nor_volumes_of_a_previous_run_are_kept(store: JobStore):
    run(store)
    run(store)
    (previous,) = History(store.root, KEY).runs()
    names = {path.name for path in previous.path.iterdir()}
    assert names == {"job.json", "status.json", "logs", NUMBER}
    assert not any(b"secret" in path.read_bytes() for path in previous.path.rglob("*") if path.is_file())


def test_numbers_go_on_after_the_history_was_cleaned(store: JobStore):
    run(store)
    run(store)
    History(store.root, KEY).trim(0, 0)
    assert History(store.root, KEY).number_of(run(store).path) == 3


def test_a_job_that_was_never_stored_whole_leaves_no_previous_run(store: JobStore):
    folder = store.folder(KEY)
    folder.path.mkdir(parents=True)
    run(store)
    assert names_with_history(store.root) == []


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path, KEY)


def previous(history: History, number: int, size: int = 10) -> Path:
    path = history.path / str(number)
    path.mkdir(parents=True)
    (path / "job.json").write_text("x" * size)
    return path


def numbers(runs: list[PreviousRun]) -> list[int]:
    return [run.number for run in runs]


def test_only_directories_with_a_number_are_previous_runs_oldest_first(history: History):
    assert history.runs() == []
    for number in (10, 9, 1):
        previous(history, number)
    (history.path / "notes").mkdir()
    (history.path / "7").write_text("a file that a user put there")
    assert numbers(history.runs()) == [1, 9, 10]


@pytest.mark.parametrize("text", ["", "two\n", "1.5"])
def test_a_number_that_is_missing_or_damaged_is_the_one_after_the_history(history: History, tmp_path: Path, text: str):
    assert history.number_of(tmp_path) == 1
    (tmp_path / NUMBER).write_text(text)
    previous(history, 4)
    assert history.number_of(tmp_path) == 5
    (tmp_path / NUMBER).write_text("8\n")
    assert history.number_of(tmp_path) == 8


def test_the_size_of_a_run_is_that_of_its_files_and_links_count_as_links(tmp_path: Path):
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    (run / "logs").mkdir(parents=True)
    (run / "job.json").write_text("x" * 100)
    (run / "logs" / "a.log").write_text("x" * 50)
    elsewhere.write_text("x" * 100_000)
    (run / "link").symlink_to(elsewhere)
    assert 150 < size_of(run) < 1000


@pytest.mark.parametrize(
    ("most", "most_bytes", "removed"),
    [(3, 300, []), (2, 1e9, [1]), (9, 299, [1]), (9, 200, [1]), (9, 199, [1, 2]), (0, 1e9, [1, 2, 3])],
)
def test_the_oldest_runs_beyond_a_number_or_a_size_are_removed(
    history: History, most: int, most_bytes: float, removed: list[int]
):
    for number in (1, 2, 3):
        previous(history, number, size=100)
    assert numbers(history.trim(most, most_bytes)) == removed
    assert numbers(history.runs()) == [number for number in (1, 2, 3) if number not in removed]


def test_a_run_that_is_too_large_goes_alone(history: History):
    for number, size in enumerate((10, 10, 200_000, 10), start=1):
        previous(history, number, size)
    assert numbers(history.trim(2, 100_000)) == [1, 3]


def test_only_the_records_and_logs_of_a_run_are_kept(history: History, tmp_path: Path):
    present, shared = tmp_path / "present", tmp_path / "shared"
    (present / "pods" / "uid").mkdir(parents=True)
    shared.mkdir()
    (shared / "data").touch()
    for name in (*KEPT, "run.json", "claim.json", "host.lock"):
        (present / name).write_text("3\n")
    (present / "volume").symlink_to(shared)
    assert history.keep(present) == 4
    assert not present.exists()
    assert {one.name for one in (history.path / "3").iterdir()} == set(KEPT)
    assert (shared / "data").exists(), "a link is removed, and not what it leads to"


def test_a_directory_without_a_job_is_removed_and_its_number_is_used_again(history: History, tmp_path: Path):
    present = tmp_path / "present"
    present.mkdir()
    (present / NUMBER).write_text("3\n")
    assert history.keep(present) == 3
    assert not present.exists()
    assert not history.path.exists()


def test_names_with_history_are_sorted_and_files_are_no_names(history: History, tmp_path: Path):
    assert names_with_history(tmp_path) == []
    previous(history, 1)
    previous(History(tmp_path, ("team", "a")), 1)
    (tmp_path / "history" / "team" / "README").touch()
    assert names_with_history(tmp_path) == [KEY, ("team", "a")]
    for _ in range(2):
        history.forget()
        assert names_with_history(tmp_path) == [("team", "a")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("keep_runs = -1", "keep_runs must be a number, 0 or more"),
        ("keep_runs = true", "keep_runs must be a number, 0 or more"),
        ("keep_runs_size = '1GB'", "keep_runs_size must be a size, such as '2Gi' or '500Mi'"),
        ("keep = 1", "keep is not a setting; known are image, gpu_image, keep_runs, keep_runs_size"),
        ("image = 1", "image must be text in quotes"),
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
