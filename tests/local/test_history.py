"""Previous runs on this machine, as a user sees them."""

from __future__ import annotations

import json

import pytest

from tests.support.pdj import Pdj


@pytest.fixture
def ran(pdj: Pdj) -> Pdj:
    """A job that ran three times."""
    pdj.environment["XDG_CONFIG_HOME"] = str(pdj.folder / "config")
    for number in (1, 2, 3):
        script = f"echo this is run {number}; exit {1 if number == 2 else 0}"
        pdj("run", pdj.write(command=["sh", "-c", script], backoffLimit=0))
    return pdj


def test_previous_runs_are_listed_and_read(ran: Pdj):
    header, *rows = ran("list", "--history").stdout.splitlines()
    assert header.split()[:3] == ["NAME", "RUN", "STATUS"]
    assert [row.split()[:3] for row in rows] == [
        ["job", "1", "Completed"],
        ["job", "2", "Failed"],
        ["job", "3", "Completed"],
    ]
    assert ran("logs", "job", "--run", "2").stdout == "this is run 2\n"
    assert ran("logs", "job", "--run", "3").stdout == ran("logs", "job").stdout == "this is run 3\n"
    assert [one["run"] for one in json.loads(ran("list", "--history", "-o", "json").stdout)] == [1, 2, 3]
    missing = ran("logs", "job", "--run", "9")
    assert missing.returncode == 2
    assert "run 9 of job job is not kept; kept previous runs: 1, 2" in missing.stderr


def test_previous_runs_are_cleaned_and_deleted_with_their_job(ran: Pdj):
    assert "removed 1 previous run, " in ran("clean", "job", "--keep", "1").stdout
    assert ran("logs", "job", "--run", "2").returncode == 0
    assert "job none has no previous runs" in ran("clean", "none").stderr
    assert ran("delete", "job").returncode == 0
    assert "No runs found" in ran("list", "--history").stderr
    assert not list((ran.state / "history").rglob("*.log"))


def test_limits_of_the_user_apply_and_a_run_too_large_to_keep_is_noted(ran: Pdj):
    config = ran.folder / "config" / "paddlejob" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("keep_runs = 1\n")
    file = ran.write(command=["sh", "-c", "head -c 3000000 /dev/zero"])
    assert "were removed" not in ran("run", file).stderr
    assert [one["run"] for one in json.loads(ran("list", "--history", "-o", "json").stdout)] == [3, 4]
    config.write_text("keep_runs_size = '1Mi'\n")
    again = ran("run", file)
    assert again.returncode == 0, again.stderr
    assert "note: the logs of the last run of job (2.9Mi) were removed" in again.stderr
    assert "set `keep_runs_size` in" in again.stderr


def test_a_copy_of_the_logs_is_kept_by_replica(pdj: Pdj):
    pdj("run", pdj.write(command=["sh", "-c", "echo from $PADDLE_TRAINER_ID"], workers=2))
    shown = pdj("logs", "job", "-f", "--save", "copy")
    assert sorted(shown.stdout.splitlines()) == ["[worker-0] from 0", "[worker-1] from 1"]
    copied = {path.name: path.read_text() for path in (pdj.folder / "copy").iterdir()}
    assert copied == {"job-worker-0.log": "from 0\n", "job-worker-1.log": "from 1\n"}
    again = pdj("logs", "job", "--save", "copy")
    assert again.returncode == 2
    assert "--save copy is not a directory, or has logs of job already; choose another" in again.stderr
    single = pdj("logs", "job", "--index", "1", "--save", "single")
    assert single.stdout == (pdj.folder / "single" / "job.log").read_text() == "from 1\n"
