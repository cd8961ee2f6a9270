"""Reading logs: whole, by replica, from near the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.client.describe.log_tail import last_lines
from paddlejob.client.targets.target import LogChoice
from paddlejob.errors import BadInput
from paddlejob.local.options import RunOptions
from paddlejob.local.state.logs import follow_logs, log_tail
from paddlejob.local.state.store import JobFolder, Store
from tests.support.builders import NOON, document


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    """A job of which the second attempt is the newest."""
    made, lock = Store(tmp_path).begin(document("a-b"), RunOptions(), NOON)
    lock.release()
    for attempt in (1, 2):
        for pod in ("a-b-worker-0", "a-b-worker-1", "a-b-ps-0"):
            log = made.log(attempt, pod)
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(f"{pod} {attempt} first\n{pod} {attempt} last\n")
    made.log(2, "a-b-worker-0", "sidecar").write_text("aside\n")
    return made


def read(folder: JobFolder, **choice: object) -> str:
    return b"".join(follow_logs(folder, LogChoice(**choice))).decode()


def test_one_replica_is_read_as_it_is(folder: JobFolder):
    assert read(folder, role="worker", index=1) == "a-b-worker-1 2 first\na-b-worker-1 2 last\n"


def test_lines_of_several_replicas_say_whose_they_are(folder: JobFolder):
    assert read(folder, role="worker", tail=1) == "[worker-0] a-b-worker-0 2 last\n[worker-1] a-b-worker-1 2 last\n"
    assert len(read(folder).splitlines()) == 6


def test_an_earlier_attempt_and_another_container(folder: JobFolder):
    assert "worker-0 1 first" in read(folder, attempt=1)
    assert read(folder, container="sidecar") == "aside\n"


def test_a_log_that_is_not_there_is_an_error(folder: JobFolder):
    with pytest.raises(BadInput, match="no such log"):
        read(folder, role="heter")


@pytest.mark.parametrize("tail", [0, 1, 3, 1000, 5000])
def test_the_tail_of_a_long_log(folder: JobFolder, tail: int):
    log = folder.log(2, "a-b-ps-0")
    lines = [f"{number} {'x' * 100}\n" for number in range(3000)]
    log.write_text("".join(lines))
    assert read(folder, role="ps", tail=tail) == "".join(lines[len(lines) - min(tail, 3000) :])


def test_the_tail_of_a_log_begins_with_a_whole_line(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(1000)))
    tail = log_tail(log)
    assert tail.startswith("line ")
    assert tail.endswith("line 999")
    assert len(tail) <= 2048
    assert log_tail(tmp_path / "absent") == ""


def test_lines_for_the_screen_have_no_control_characters(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"one\n\x1b[31mred\x1b[0m\n 10%\r 50%\r100%\n\n")
    assert last_lines(log, 3) == ["one", "red", "100%"]


def test_a_last_line_that_never_ended_is_shown_too(folder: JobFolder):
    folder.log(2, "a-b-worker-1").write_text("first\nloss=0.1")
    assert read(folder, role="worker").endswith("[worker-1] first\n[worker-1] loss=0.1\n")


def test_replicas_are_in_the_order_of_their_numbers(folder: JobFolder):
    for index in (2, 10):
        folder.log(2, f"a-b-worker-{index}").write_text("here\n")
    titles = [line.split()[0] for line in read(folder, role="worker", tail=1).splitlines()]
    assert titles == ["[worker-0]", "[worker-1]", "[worker-2]", "[worker-10]"]


def test_a_job_may_have_a_dot_in_its_name(tmp_path: Path):
    made, lock = Store(tmp_path).begin(document("my.job"), RunOptions(), NOON)
    lock.release()
    for name in ("", "sidecar"):
        log = made.log(1, "my.job-worker-0", name)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"from {name or 'paddle'}\n")
    assert (read(made), read(made, container="sidecar")) == ("from paddle\n", "from sidecar\n")


def test_the_environment_that_the_launcher_prints_stays_in_the_log(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("Container failed\nenv {'SECRET_TOKEN': 'hunter2', 'HOME': '/'}\nthe end\n")
    assert log_tail(log) == "Container failed\nenv {...}\nthe end"
    assert last_lines(log, 2) == ["env {...}", "the end"]
