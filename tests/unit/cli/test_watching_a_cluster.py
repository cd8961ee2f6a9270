"""Watching and following jobs on a cluster: keys, Ctrl-C, several jobs, and waiting after a submission."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.cli.run.attach import look_again, watch_jobs
from paddlejob.errors import JobFailed, Overloaded
from paddlejob.local.state.store import JobStore
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.sync import SyncTarget
from paddlejob.targets.views import JobView
from tests.support.builders import document
from tests.support.cluster_verbs import Pdj
from tests.support.job_views import ENDED, view
from tests.support.scripted_cluster import JOB, ScriptedCluster


class Target(LocalTarget):
    """Jobs as a test gives them, in turn."""

    def __init__(self, folder: Path, *answers: JobView | BaseException) -> None:
        super().__init__(JobStore(folder))
        self.answers = list(answers)

    async def job(self, namespace: str, name: str) -> JobView:
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalTarget, "pause", 0.0)
    monkeypatch.setattr(ClusterTarget, "pause", 0.0)


@pytest.mark.parametrize("key", ["q", "Q"])
def test_q_stops_watching_and_the_job_goes_on(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    keys = ["", "x", key]
    monkeypatch.setattr("paddlejob.cli.run.keyboard.Keyboard.wait", lambda *_: keys.pop(0))
    target = Target(tmp_path, view(), view(), view())
    assert watch_jobs(SyncTarget(target), [("default", "mnist")]) == 0
    assert (keys, target.answers) == ([], [])
    assert "mnist keeps training; watch it again with `pdj watch mnist`" in capsys.readouterr().out


def test_ctrl_c_stops_watching_with_its_own_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert watch_jobs(SyncTarget(Target(tmp_path, view(), KeyboardInterrupt())), [("default", "mnist")]) == 130
    assert "mnist keeps training" in capsys.readouterr().out


def test_the_failures_of_all_jobs_are_reported(tmp_path: Path):
    failed = view("Failed", reason="R", message="m", **ENDED)
    target = Target(tmp_path, failed, view("Completed", **ENDED), failed)
    keys = [("a", "mnist"), ("a", "other"), ("b", "mnist")]
    with pytest.raises(JobFailed) as raised:
        watch_jobs(SyncTarget(target), keys)
    assert str(raised.value).splitlines() == ["default/mnist failed: R: m"] * 2, "two have the same name"


def test_a_cluster_that_has_too_many_requests_is_asked_again(tmp_path: Path):
    said: list[str] = []
    screen: Any = type("Screen", (), {"say": staticmethod(said.append)})
    (seen,) = look_again(SyncTarget(Target(tmp_path, Overloaded(429, "TooManyRequests", "busy"))), [view()], screen)
    note = "busy (429 TooManyRequests); trying again"
    assert (seen.note, said) == (note, [f"pdj: {note}"])


RUNNING = {"phase": "Running", "message": "all pods are running", "attempt": 1}
COMPLETED = {"phase": "Completed", "message": "done", "attempt": 1, **ENDED}


async def test_a_submission_is_waited_for_through_every_phase(
    api: ScriptedCluster, called: Pdj, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(document()))
    states = [RUNNING, RUNNING, COMPLETED]

    def stored(_: Any) -> tuple[int, Any]:
        return 200, {**api.objects[JOB], "status": states.pop(0) if len(states) > 1 else states[0]}

    api.answers["POST", "default/paddlejobs"] = lambda body: (
        api.answers.update({("GET", JOB): stored}) or (201, api.put(JOB, body))
    )
    done = await called("submit", "job.yaml", "--wait", "--save", "kept.yaml")
    assert done.returncode == 0, done.stderr
    phases = [line.split(": ")[1] for line in done.stdout.splitlines() if " mnist: " in line]
    assert phases == ["Running", "Completed"]
    assert yaml.safe_load((tmp_path / "kept.yaml").read_text())["kind"] == "PaddleJob"


async def test_of_several_jobs_only_the_phases_are_followed(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all([document("one"), document("two")]))
    api.answers["POST", "default/paddlejobs"] = lambda body: (
        201,
        api.put(f"default/paddlejobs/{body['metadata']['name']}", {**body, "status": COMPLETED}),
    )
    done = await called("submit", "jobs.yaml", "--follow")
    assert done.returncode == 0, done.stderr
    assert [line.partition("s ")[2] for line in done.stdout.splitlines()[-2:]] == [
        "one: Completed: done", "two: Completed: done",
    ]  # fmt: skip
    both = await called("submit", "jobs.yaml", "--follow", "--save-logs", "logs")
    assert (both.returncode, "works with --follow and a single job" in both.stderr) == (2, True)


async def test_ctrl_c_while_logs_are_followed_only_detaches(
    api: ScriptedCluster, called: Pdj, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(document(ps=1)))

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("paddlejob.cli.output.logs.print_logs", interrupted)
    done = await called("submit", "job.yaml", "--follow")
    assert done.returncode == 130
    assert done.stderr.endswith("mnist keeps training; follow it with `pdj logs -f mnist --cluster`\n")
