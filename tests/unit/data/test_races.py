"""Two runs at one destination, and runs of two kinds one after another."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import pytest

from paddlejob.data import Manifest, split, stage
from paddlejob.data.journal import format_entries, parse_entries
from paddlejob.data.stores import lock as store_lock
from paddlejob.data.stores.lock import exclusive
from paddlejob.errors import BadInput, NotPossible

LINES = b"".join(map(b"line %d\n".__mod__, range(300_000)))


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "train.txt").write_bytes(LINES)
    return str(tmp_path / "train.txt")


def in_memory(url: str, made: Manifest) -> bytes:
    fs = fsspec.filesystem("memory")
    return b"".join(fs.cat(f"{url}/{part.part}/data/train.txt") for part in made.parts)


def test_many_at_once_end_well_or_say_that_another_is_there(source: str, tmp_path: Path) -> None:
    dest = tmp_path / "out"
    command = [sys.executable, "-c", f"from paddlejob.data import split; split({source!r}, {str(dest)!r}, 5)"]
    runs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(6)]
    messages = [run.communicate(timeout=60)[1] for run in runs]
    rejected = [message for run, message in zip(runs, messages, strict=True) if run.returncode]
    assert len(rejected) < len(runs)
    assert all("another pdj process is writing here" in message for message in rejected)
    assert sorted(path.name for path in dest.iterdir()) == ["0", "1", "2", "3", "4", "manifest.json"]
    assert b"".join((dest / f"{part}/data/train.txt").read_bytes() for part in range(5)) == LINES


def test_a_lock_that_was_removed_meanwhile_is_not_mistaken_for_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, take, times = tmp_path / "work/lock", store_lock.try_lock, []

    def take_late(descriptor: int) -> bool:
        times.append(descriptor)
        if len(times) == 1:
            lock.unlink()  # as the run before does when it ends
            lock.parent.rmdir()
        return take(descriptor)

    monkeypatch.setattr(store_lock, "try_lock", take_late)
    with exclusive(lock, "here"):
        assert lock.exists() and len(times) == 2
        with pytest.raises(NotPossible, match="here: another pdj process is writing here"), exclusive(lock, "here"):
            pass
        assert lock.exists()
    assert not lock.parent.exists()


def test_where_there_are_no_locks_an_earlier_run_gives_way_to_a_later(source: str, memory: str) -> None:
    later: list[Manifest] = []

    def start_another(step: str, done: int, total: int | None) -> None:
        if step == "writing" and total and done > total // 2 and not later:
            later.append(split(source, memory, 3))

    with pytest.raises(NotPossible, match="another pdj process has started writing here"):
        split(source, memory, 3, progress=start_another)
    assert in_memory(memory, later[0]) == LINES
    assert later[0].kept == (0,)


def test_a_rejected_run_does_not_disturb_the_running_one(source: str, memory: str) -> None:
    rejected: list[str] = []

    def start_another(step: str, done: int, total: int | None) -> None:
        if step == "writing" and done and not rejected:
            with pytest.raises(BadInput, match="contains an unfinished split") as failed:
                split(source, memory, 7)
            rejected.append(str(failed.value))

    made = split(source, memory, 3, progress=start_another)
    assert rejected and in_memory(memory, made) == LINES
    assert not fsspec.filesystem("memory").exists(f"{memory}/.pdj-data")


def test_staging_continues_after_a_kill_with_what_it_had_not_recorded_yet(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(50):
        (tmp_path / f"in/{number:02}").write_bytes(LINES)
    slow = (
        "import sys, time\n"
        "from paddlejob.data import stage\n"
        "stage(sys.argv[1], sys.argv[2], progress=lambda *_: time.sleep(0.01))"
    )
    running = subprocess.Popen([sys.executable, "-c", slow, str(tmp_path / "in"), str(tmp_path / "here")])
    until = time.monotonic() + 60
    while not (tmp_path / "here/05").exists():
        assert running.poll() is None and time.monotonic() < until
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not (tmp_path / "here/.pdj-staged.json").exists() and not (tmp_path / "here/49").exists()

    staged = stage(str(tmp_path / "in"), str(tmp_path / "here"))

    assert len(staged.files) == 50
    assert {path.read_bytes() for path in (tmp_path / "here").glob("[0-9]*")} == {LINES}
    assert not (tmp_path / "here/.pdj-data").exists()


def unfinished(dest: Path, entry: dict[str, object]) -> None:
    (dest / ".pdj-data").mkdir(parents=True)
    (dest / ".pdj-data/journal.jsonl").write_text(json.dumps(entry) + "\n")


def test_a_journal_counts_up_to_its_first_damaged_line() -> None:
    whole = format_entries({"a": 1}, {"b": 2})
    for damage in (b'{"c": 3}', b'{\n{"c": 3}\n', b'[]\n{"c": 3}\n'):
        assert parse_entries(whole + damage) == [{"a": 1}, {"b": 2}]


def test_a_split_does_not_take_up_an_unfinished_staging(source: str, tmp_path: Path) -> None:
    unfinished(tmp_path / "out", {"files": [], "bringing": ["x"]})
    with pytest.raises(BadInput, match="contains an unfinished `pdj data stage`"):
        split(source, str(tmp_path / "out"), 2)
    assert split(source, str(tmp_path / "out"), 2, overwrite=True).records == 300_000


def test_staging_does_not_take_up_an_unfinished_split(source: str, tmp_path: Path) -> None:
    unfinished(tmp_path / "out", {"request": {}})
    with pytest.raises(BadInput, match="contains an unfinished split"):
        stage(source, str(tmp_path / "out"))


def test_notes_that_a_power_cut_has_spoilt_are_left_aside(source: str, tmp_path: Path) -> None:
    made = split(source, str(tmp_path / "out"), 3)
    noted = [{"request": dict(made.request)}, made.parts[0].as_json()]
    spoilt = b"".join(json.dumps(entry).encode() + b"\n" for entry in noted) + b"\0\0\0\n[1]\n{}\n"
    (tmp_path / "out/.pdj-data").mkdir()
    (tmp_path / "out/.pdj-data/journal.jsonl").write_bytes(spoilt)
    assert split(source, str(tmp_path / "out"), 3).kept == (0,)


def test_a_damaged_staging_record_is_reported(source: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/.pdj-staged.json").write_text("[]")
    with pytest.raises(BadInput, match=r"its .pdj-staged.json is invalid; remove it"):
        stage(source, str(tmp_path / "here"))


def test_a_record_of_a_staging_cannot_have_files_elsewhere_removed(source: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "precious").touch()
    for name in ("../precious", str(tmp_path / "precious")):
        forged = {"files": [{"name": name, "bytes": 0, "sha256": "", "mark": ""}]}
        (tmp_path / "here/.pdj-staged.json").write_text(json.dumps(forged))
        stage(source, str(tmp_path / "here"), overwrite=True)
        assert (tmp_path / "precious").exists()


def test_while_a_damaged_part_is_repaired_no_manifest_says_that_all_is_there(source: str, tmp_path: Path) -> None:
    split(source, str(tmp_path / "out"), 3)
    (tmp_path / "out/1/data/train.txt").write_bytes(b"damaged")
    seen: set[bool] = set()

    def look(step: str, done: int, total: int | None) -> None:
        if step == "writing":
            seen.add((tmp_path / "out/manifest.json").exists())

    split(source, str(tmp_path / "out"), 3, progress=look)
    assert seen == {False} and (tmp_path / "out/manifest.json").exists()
