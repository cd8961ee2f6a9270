"""Former runs: what in their directory is no run, and how much of them is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.local.state.history import KEPT, NUMBER, History, names_with_history, size_of

KEY = ("team", "mnist")


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path, KEY)


def former(history: History, number: int, size: int = 10) -> Path:
    path = history.path / str(number)
    path.mkdir(parents=True)
    (path / "job.json").write_text("x" * size)
    return path


def numbers(history: History) -> list[int]:
    return [run.number for run in history.runs()]


def test_only_directories_with_a_number_are_former_runs_oldest_first(history: History):
    assert numbers(history) == []
    for number in (10, 9, 1):
        former(history, number)
    (history.path / "notes").mkdir()
    (history.path / "7").write_text("a file that a user put there")
    assert numbers(history) == [1, 9, 10]


@pytest.mark.parametrize("text", ["", "two\n", "1.5"])
def test_a_number_that_is_damaged_is_the_one_after_the_history(history: History, tmp_path: Path, text: str):
    (tmp_path / NUMBER).write_text(text)
    assert history.number_of(tmp_path) == 1
    former(history, 4)
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


def test_a_run_that_just_fits_is_kept(history: History):
    for number in (1, 2, 3):
        former(history, number, size=100)
    assert [run.number for run in history.trim(2, 200)] == [1]
    assert history.trim(2, 200) == []
    assert [run.number for run in history.trim(2, 199)] == [2]
    assert numbers(history) == [3]
    assert [run.number for run in history.trim(0, 1e9)] == [3]


def test_what_is_removed_is_listed_oldest_first(history: History):
    for number in range(1, 6):
        former(history, number)
    assert [run.number for run in history.trim(1, 1e9)] == [1, 2, 3, 4]


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
    former(history, 1)
    former(History(tmp_path, ("default", "z")), 1)
    (tmp_path / "history" / "team" / "README").touch()
    assert names_with_history(tmp_path) == [("default", "z"), KEY]
    history.forget()
    assert names_with_history(tmp_path) == [("default", "z")]
    history.forget()
