"""`pdj run`, `watch` and `rerun` on this machine, with real processes."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from paddlejob.local.options import RunOptions
from tests.support.builders import NOON
from tests.support.pdj import Pdj


@pytest.fixture
def pdj(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pdj]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    made = Pdj(tmp_path)
    yield made
    made.close()
    assert {number: signal.getsignal(number) for number in previous} == previous


def test_a_job_is_watched_to_its_end_and_its_phase_is_the_exit_status(pdj: Pdj):
    done = pdj.here("run", pdj.write(command=["bash", "-c", "echo hello"]))
    assert done.returncode == 0, done.stderr
    assert "job: Completed" in done.stdout and "\njob completed in " in done.stdout
    failed = pdj.here("run", pdj.write("bad", command=["bash", "-c", "exit 3"], backoffLimit=0))
    assert failed.returncode == 1
    assert "pdj: bad failed: " in failed.stderr
    assert "for details run `pdj why bad`" in failed.stdout


def test_a_job_in_the_background_names_the_commands_for_it_and_can_be_watched(pdj: Pdj):
    started = pdj.here("run", pdj.write(command=["bash", "-c", "true"]), "--detach", "-n", "team")
    assert started.stdout == (
        "job runs in the background; next: `pdj get job -n team`, `pdj logs -f job -n team`, `pdj delete job -n team`\n"
    )
    watched = pdj.here("watch", "job", "-n", "team")
    assert watched.returncode == 0, watched.stderr
    assert "job completed in " in watched.stdout
    assert pdj.here("watch", "job").returncode == 2, "it is in another namespace"


def test_a_job_runs_again_with_the_environment_of_its_previous_run_and_both_runs_are_kept(
    pdj: Pdj, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WORD", "from the first shell")
    pdj.here("run", pdj.write(command=["bash", "-c", "echo $WORD"]), "-n", "team")
    monkeypatch.delenv("WORD")
    again = pdj.here("rerun", "job", "-n", "team")
    assert again.stdout == "job runs again; follow it with `pdj logs -f job -n team`\n", again.stderr
    assert pdj.here("watch", "job", "-n", "team").returncode == 0
    assert pdj.here("logs", "job", "-n", "team").stdout.endswith("from the first shell\n")
    assert [line.split()[2] for line in pdj.here("list", "--history").stdout.splitlines()[1:]] == ["1", "2"]


def test_a_failed_job_fails_who_watches_it(pdj: Pdj):
    pdj.here("run", pdj.write(command=["bash", "-c", "exit 3"], backoffLimit=0))
    watched = pdj.here("watch", "job")
    assert watched.returncode == 1
    assert watched.stderr.startswith("pdj: job failed: ")


def test_a_job_that_has_not_ended_is_not_run_again(pdj: Pdj):
    pdj.here("run", pdj.write(command=["sleep", "1000"]), "--detach")
    early = pdj.here("rerun", "job")
    assert early.returncode == 2
    assert (
        "job job has not ended (" in early.stderr
        and "or first delete it and its logs with `pdj delete job`" in early.stderr
    )
    pdj.here("delete", "job")


def test_a_job_that_no_longer_fits_this_machine_is_not_run_again(pdj: Pdj):
    path = Path(pdj.write(command=["bash", "-c", "true"]))
    assert pdj.here("run", str(path)).returncode == 0
    stored = pdj.folder_of("job").path / "job.json"
    made = json.loads(stored.read_text())
    made["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10000"}}
    stored.write_text(json.dumps(made))
    refused = pdj.here("rerun", "job")
    assert refused.returncode == 1
    assert refused.stderr.startswith("pdj: job job: "), refused.stderr
    assert pdj.status("job").phase == "Completed", "the previous run is kept"


@pytest.mark.parametrize("detach", [(), ("--detach",)])
def test_a_job_that_starts_over_is_noted_once(pdj: Pdj, detach: tuple[str, ...]):
    path = pdj.write(command=["bash", "-c", "true"])
    pdj.store.begin(yaml.safe_load(Path(path).read_text()), RunOptions(), NOON)[1].release()
    done = pdj.here("run", path, *detach)
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        0,
        ["note: job was interrupted and starts over; to continue it instead, use `pdj resume job`"],
    )
    assert done.stderr.startswith("note: Image program is not used locally")
    pdj.until("job", phase="Completed")


def test_what_kubernetes_accepts_but_is_hardly_meant_is_a_warning(pdj: Pdj):
    path = pdj.write(command=["python", "-c", "print(1)", "-m", "paddle.distributed.launch"], ps=1)
    done = pdj.here("run", path)
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert [line.split(": ")[2] for line in warnings] == ["spec.ps", "spec.worker"]
