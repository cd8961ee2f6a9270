"""The life of one pod on this machine: what is started when, and how a pod ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from paddlejob.local.runtime import pod_worker
from paddlejob.local.runtime.hooks import hook_of
from paddlejob.local.runtime.pod_runtime import PodRuntime
from paddlejob.plan import PodPhase
from paddlejob.plan.diagnosis.permanent import HOOK_FAILED
from tests.support.builders import NOON
from tests.support.scripted_supervisor import GRACE, Make, OnePod, Timers, container

pytestmark = pytest.mark.usefixtures("timers")

SIDECAR = container("proxy", restartPolicy="Always")
TRAINER = container()


def seen(stage: OnePod) -> tuple[PodPhase, int | None, str, str]:
    pod = stage.pod.seen
    return pod.phase, pod.exit_code, pod.reason, pod.message


def test_a_pod_that_is_not_bound_starts_nothing(make: Make):
    stage = make()
    stage.publish()
    assert stage.supervisor.take() == []
    assert stage.pod.seen.phase is PodPhase.PENDING


def test_a_bound_pod_waits_for_its_environment_and_then_starts_all_its_containers_once(make: Make):
    stage = make(containers=[container(), container("logger")])
    stage.bind()
    assert stage.pod.seen.phase is PodPhase.WAITING
    assert stage.supervisor.take() == []
    stage.publish()
    stage.kubelet.sync(stage.local)
    assert stage.supervisor.take() == ["start paddle", "start logger"]
    assert stage.pod.seen.phase is PodPhase.WAITING, "it runs when its program does"
    assert stage.local.has_processes, "what is being started may run already"


def test_a_pod_whose_environment_is_published_already_starts_as_soon_as_it_is_bound(make: Make):
    stage = make()
    stage.publish()
    stage.bind()
    assert stage.supervisor.take() == ["start paddle"]


def test_a_pod_runs_from_the_moment_its_training_container_does(make: Make):
    stage = make(containers=[container(), container("logger")])
    stage.bind()
    stage.publish()
    stage.report("logger", started=7)
    assert stage.pod.seen.phase is PodPhase.WAITING
    stage.now = NOON + 5
    before = stage.changes
    stage.report("paddle", started=8)
    assert stage.changes > before, "the planner looks again"
    assert stage.pod.seen.phase is PodPhase.RUNNING
    record = stage.pod.record(Path("log"))
    assert (record.pid, record.started) == (8, "2027-01-15T08:00:05Z")


def test_init_containers_run_one_after_the_other_before_the_start_barrier(make: Make):
    stage = make(initContainers=[container("first"), container("second")])
    stage.publish()
    stage.bind()
    assert stage.supervisor.take() == ["start first"]
    stage.report("first", started=1)
    assert stage.pod.seen.phase is PodPhase.PENDING
    stage.exit("first", 0)
    assert stage.supervisor.take() == ["start second"]
    stage.report("second", started=2)
    stage.exit("second", 0)
    assert stage.supervisor.take() == ["start paddle"]


@pytest.mark.parametrize(("code", "oom", "reason"), [(3, False, ""), (137, True, "OOMKilled")])
def test_an_init_container_that_fails_fails_the_pod_with_its_output(make: Make, code: int, oom: bool, reason: str):
    stage = make(initContainers=[container("fetch")])
    stage.bind()
    stage.report("fetch", started=1)
    log = stage.local.log(stage.pod, stage.pod.init_containers[0])
    log.write_text("no such bucket\n")
    stage.exit("fetch", code, oom=oom)
    assert seen(stage) == (PodPhase.FAILED, code, reason, "init container fetch failed:\nno such bucket")
    stage.publish()
    assert stage.supervisor.take() == ["start fetch", "terminate fetch"], "and what it started ends with it"


@pytest.mark.parametrize(("code", "phase"), [(0, PodPhase.SUCCEEDED), (1, PodPhase.FAILED)])
def test_a_pod_ends_with_its_program_and_takes_its_other_containers_along(make: Make, code: int, phase: PodPhase):
    stage = make(containers=[container("logger"), container()])
    stage.run("logger", "paddle")
    stage.now = NOON + 60
    stage.report("paddle", ended=code, oom=False)
    assert seen(stage)[:3] == (phase, code, "")
    assert "terminate logger" in stage.supervisor.take()
    assert stage.local.has_processes
    stage.exit("logger", 143)
    stage.report("paddle", gone=True)
    assert not stage.local.has_processes
    assert seen(stage)[:3] == (phase, code, "")
    assert stage.pod.record(Path("log")).ended == "2027-01-15T08:01:00Z"
    assert stage.pod.note == "", "that the others ended is no failure"


def test_a_failed_program_leaves_the_end_of_its_log_and_one_that_succeeded_does_not(make: Make):
    for code, message in ((1, "loss is nan"), (0, "")):
        stage = make()
        stage.run()
        stage.local.log(stage.pod, TRAINER).write_text("loss is nan\n")
        stage.exit("paddle", code)
        assert stage.pod.seen.message == message
        stage.close()


def test_a_termination_message_is_preferred_to_the_log(make: Make):
    stage = make(containers=[container(terminationMessagePath="/dev/termination-log")])
    stage.run()
    stage.local.log(stage.pod, TRAINER).write_text("much output\n")
    (stage.pod.own / "termination" / "paddle").write_text("the last word\n")
    stage.exit("paddle", 1)
    assert stage.pod.seen.message == "the last word"


def test_a_full_disk_is_named_beside_the_end_of_the_log(make: Make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pod_worker, "LEAST_FREE", 1 << 60)
    stage = make()
    stage.run()
    stage.local.log(stage.pod, TRAINER).write_text("cannot write the model\n")
    stage.exit("paddle", 1)
    assert "cannot write the model\nthe disk is full" in stage.pod.seen.message


def test_a_training_container_that_vanishes_without_a_status_was_killed(make: Make):
    stage = make()
    stage.run()
    stage.report("paddle", gone=True)
    assert seen(stage)[:2] == (PodPhase.FAILED, 137)


def test_a_program_or_init_container_that_cannot_be_started_fails_the_pod(make: Make):
    stage = make(initContainers=[container("fetch")])
    stage.bind()
    stage.report("fetch", failed="fetch: no such command")
    assert seen(stage) == (PodPhase.FAILED, 128, "StartError", "fetch: no such command")
    stage.close()
    stage = make(containers=[container(), container("logger")])
    stage.bind()
    stage.publish()
    stage.report("logger", started=2)
    stage.supervisor.take()
    stage.report("paddle", failed="python: no such command")
    assert seen(stage) == (PodPhase.FAILED, 128, "StartError", "python: no such command")
    assert "terminate logger" in stage.supervisor.take()


def test_another_container_that_cannot_be_started_or_fails_is_noted_and_training_continues(make: Make):
    stage = make(containers=[container(), container("logger"), container("exporter")])
    stage.run("paddle", "logger", "exporter")
    stage.exit("logger", 0)
    assert stage.pod.note == "", "one that completes is no failure"
    stage.report("logger", failed="no such command")
    assert stage.pod.note == "container logger of mnist-worker-0 could not start: no such command"
    stage.exit("exporter", 2)
    assert stage.pod.note == "container exporter of mnist-worker-0 failed with exit status 2; see its log"
    assert stage.pod.seen.phase is PodPhase.RUNNING
    assert stage.supervisor.take() == []


def test_a_template_that_this_engine_cannot_run_fails_the_pod_for_good(make: Make):
    stage = make(containers=[container(volumeMounts=[{"name": "data", "mountPath": "/data"}])])
    stage.bind()
    assert seen(stage)[:3] == (PodPhase.FAILED, 128, "InvalidTemplate")
    assert 'no volume is named "data" (there are none); add it to volumes of the pod' in stage.pod.seen.message
    stage.publish()
    assert stage.supervisor.take() == []


def test_a_container_that_this_engine_cannot_run_keeps_the_rest_of_its_pod_from_starting(make: Make):
    unknown = {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "absent", "key": "x"}}}
    stage = make(containers=[container(env=[unknown]), container("logger")])
    stage.bind()
    stage.publish()
    assert seen(stage)[1:3] == (128, "InvalidTemplate")
    assert "ConfigMap absent does not exist" in stage.pod.seen.message
    assert stage.supervisor.take() == []


def test_an_error_of_the_system_may_pass_so_the_pod_may_be_started_again(make: Make):
    stage = make(volumes=[{"name": "data", "emptyDir": {}}])
    stage.pod.own.parent.mkdir(parents=True, exist_ok=True)
    stage.pod.own.write_text("a file in the way")
    stage.bind()
    assert seen(stage)[:3] == (PodPhase.FAILED, 128, "StartError")
    assert str(stage.pod.own) in stage.pod.seen.message


def test_an_unexpected_error_names_its_type_and_where_the_traceback_is(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    stage = make()

    def broken(*_: object) -> None:
        raise KeyError("volumes")

    monkeypatch.setattr(PodRuntime, "prepare_volumes", broken)
    stage.bind()
    assert seen(stage)[2:] == ("StartError", "KeyError: 'volumes'; the traceback is in engine.log of the job")
    assert "Traceback" in capsys.readouterr().out


def test_a_stopped_pod_is_kept_and_its_program_has_its_grace_period(make: Make, timers: Timers):
    stage = make()
    stage.run()
    stage.kubelet.stop(stage.local, "mnist-worker-0", "uid-1")
    assert stage.pod.seen.stopping
    assert stage.supervisor.take() == ["terminate paddle"]
    timers.pass_(GRACE - 1)
    assert stage.supervisor.take() == []
    timers.pass_(1)
    assert stage.supervisor.take() == ["kill paddle"]
    stage.exit("paddle", 137)
    assert seen(stage)[:3] == (PodPhase.FAILED, 137, "DeadlineExceeded")
    assert stage.pod.record(Path("log")).state == "Stopped"
    assert "mnist-worker-0" in stage.local.pods


def test_a_pod_that_is_stopped_before_its_program_runs_ends_at_once(make: Make):
    stage = make()
    stage.bind()
    stage.kubelet.stop(stage.local, "mnist-worker-0", "uid-1")
    assert seen(stage) == (PodPhase.FAILED, None, "DeadlineExceeded", "")
    stage.publish()
    assert stage.supervisor.take() == []


def test_stopping_a_pod_that_has_ended_does_not_change_how_it_ended(make: Make):
    stage = make()
    stage.run()
    stage.exit("paddle", 0)
    stage.kubelet.stop(stage.local, "mnist-worker-0", "uid-1")
    assert seen(stage)[:3] == (PodPhase.SUCCEEDED, 0, "")


def test_a_pod_that_is_stopped_while_it_initializes_ends_with_its_init_container(make: Make):
    stage = make(initContainers=[container("fetch")])
    stage.bind()
    stage.report("fetch", started=1)
    stage.publish()
    stage.kubelet.stop(stage.local, "mnist-worker-0", "uid-1")
    stage.exit("fetch", 0)
    assert seen(stage)[:3] == (PodPhase.FAILED, None, "DeadlineExceeded")
    assert stage.supervisor.take() == ["start fetch", "terminate fetch"]


def test_how_a_deleted_program_ends_says_nothing_about_it(make: Make):
    stage = make()
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    stage.report("paddle", ended=143, oom=False)
    assert stage.pod.seen.phase is PodPhase.RUNNING
    assert stage.pod.seen.exit_code is None


def test_a_pod_over_its_memory_is_killed_at_once_and_says_so(make: Make, timers: Timers):
    stage = make(containers=[container(resources={"limits": {"memory": "1"}})])
    stage.run()
    stage.pod.alive["paddle"] = os.getpid()
    stage.kubelet.enforce_memory_limits()
    assert stage.supervisor.take() == ["kill paddle"]
    assert timers.delays == []
    stage.exit("paddle", 137)
    assert seen(stage)[:3] == (PodPhase.FAILED, 137, "OOMKilled")


def test_killing_everything_waits_for_no_grace_period(make: Make, timers: Timers):
    stage = make(containers=[container(), container("logger")])
    stage.run("paddle", "logger")
    stage.kubelet.kill_all(stage.local)
    assert stage.supervisor.take() == ["kill paddle", "kill logger"]
    assert timers.delays == []
    stage.exit("paddle", 137)
    assert stage.pod.seen.phase is PodPhase.RUNNING, "it was killed on request"


def test_what_has_ended_by_itself_is_not_killed_when_the_grace_period_is_over(make: Make, timers: Timers):
    stage = make(containers=[container(), container("logger")])
    stage.run("paddle", "logger")
    stage.exit("paddle", 0)
    stage.exit("logger", 143)
    stage.supervisor.take()
    timers.pass_(GRACE)
    assert stage.supervisor.take() == []


def test_a_sidecar_starts_before_what_follows_it_and_keeps_running(make: Make):
    stage = make(initContainers=[SIDECAR, container("fetch")])
    stage.publish()
    stage.bind()
    assert stage.supervisor.take() == ["start proxy"]
    stage.report("proxy", started=1)
    assert stage.supervisor.take() == ["start fetch"]
    stage.report("fetch", started=2)
    stage.exit("fetch", 0)
    assert stage.supervisor.take() == ["start paddle"]
    stage.report("paddle", started=3)
    assert stage.pod.seen.phase is PodPhase.RUNNING


def test_a_pod_with_a_sidecar_starts_when_its_environment_is_published_later(make: Make):
    stage = make(initContainers=[SIDECAR])
    stage.bind()
    stage.report("proxy", started=1)
    assert stage.pod.seen.phase is PodPhase.WAITING
    stage.publish()
    assert stage.supervisor.take() == ["start proxy", "start paddle"]


def test_a_sidecar_is_asked_to_end_only_after_the_programs(make: Make):
    stage = make(initContainers=[SIDECAR], containers=[container(), container("logger")])
    stage.bind()
    stage.report("proxy", started=1)
    stage.publish()
    for name in ("paddle", "logger"):
        stage.report(name, started=2)
    stage.supervisor.take()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == ["terminate paddle", "terminate logger"]
    stage.exit("paddle", 0)
    assert stage.supervisor.take() == []
    stage.exit("logger", 0)
    assert stage.supervisor.take() == ["terminate proxy"]


def test_a_sidecar_that_ends_is_noted_and_started_again_later_each_time(make: Make, timers: Timers):
    stage = make(initContainers=[SIDECAR])
    stage.bind()
    delays = []
    for _ in range(9):
        stage.report("proxy", started=1)
        stage.supervisor.take()
        stage.exit("proxy", 1)
        assert stage.pod.note == "container proxy of mnist-worker-0 failed with exit status 1; see its log"
        assert stage.supervisor.take() == []
        delays += timers.delays
        timers.pass_(timers.delays[0])
        assert stage.supervisor.take() == ["start proxy"]
    assert delays == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert stage.pod.seen.phase is PodPhase.WAITING


def with_sidecar(make: Make, proxy: dict[str, Any] = SIDECAR, **pod: Any) -> OnePod:
    """A pod whose sidecar runs, and whose environment is not published yet."""
    stage = make(initContainers=[proxy], **pod)
    stage.bind()
    stage.report("proxy", started=1)
    return stage


@pytest.mark.parametrize("how", ["ended", "deleted", "removed"])
def test_a_sidecar_is_not_started_again_when_its_pod_no_longer_needs_it(make: Make, timers: Timers, how: str):
    stage = with_sidecar(make)
    stage.publish()
    stage.report("paddle", started=2)
    stage.exit("proxy", 1)
    match how:
        case "ended":
            stage.exit("paddle", 0)
        case "deleted":
            stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
        case "removed":
            stage.local.remove(stage.pod)
    stage.supervisor.take()
    timers.pass_(60)
    assert [one for one in stage.supervisor.take() if one.startswith("start")] == []


def test_a_sidecar_that_ends_with_its_pod_is_no_failure(make: Make, timers: Timers):
    stage = with_sidecar(make)
    stage.publish()
    stage.report("paddle", started=2)
    stage.exit("paddle", 0)
    stage.exit("proxy", 143)
    stage.supervisor.take()
    timers.pass_(60)
    assert (stage.supervisor.take(), stage.pod.note) == ([], "")


def test_a_sidecar_that_was_started_again_is_treated_like_the_first(make: Make, timers: Timers):
    stage = with_sidecar(make, hooked("proxy", preStop=["save"]) | {"restartPolicy": "Always"})
    failed = "container proxy of mnist-worker-0 failed with exit status {}; see its log"
    for code, end in ((1, {"ended": 1, "oom": False}), (137, {})):
        for report in (end, {"gone": True}):
            stage.report("proxy", **report)
        assert stage.pod.note == failed.format(code), "also one that vanished without a status"
        timers.pass_(60)
        stage.report("proxy", started=2)
    stage.supervisor.take()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == ["start proxy.preStop"]


def test_a_pod_that_is_stopped_before_its_program_ends_when_its_last_sidecar_is_gone(make: Make):
    stage = with_sidecar(make)
    stage.kubelet.stop(stage.local, "mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == ["start proxy", "terminate proxy"]
    assert not stage.pod.seen.ended
    stage.exit("proxy", 143)
    assert seen(stage)[:3] == (PodPhase.FAILED, None, "DeadlineExceeded")


def hooked(name: str = "paddle", **hooks: Any) -> dict[str, Any]:
    return container(name, lifecycle={kind: {"exec": {"command": command}} for kind, command in hooks.items()})


@pytest.mark.parametrize(
    ("reports", "how"),
    [
        ([{"started": 2}, {"ended": 1, "oom": False}, {"gone": True}], "failed with exit status 1"),
        ([{"failed": "touch: no such command"}, {"gone": True}], "could not start: touch: no such command"),
    ],
)
def test_a_post_start_hook_that_fails_kills_its_container_and_says_why(
    make: Make, reports: list[dict[str, Any]], how: str
):
    stage = make(containers=[hooked(postStart=["touch", "x"])])
    stage.bind()
    stage.publish()
    stage.report("paddle", started=1)
    assert stage.supervisor.take() == ["start paddle", "start paddle.postStart"]
    assert stage.supervisor.started["paddle.postStart"]["argv"] == ["touch", "x"]
    stage.local.log(stage.pod, {"name": "paddle.postStart"}).write_text("no such directory\n")
    for report in reports:
        stage.report("paddle.postStart", **report)
    assert stage.pod.note == f"the postStart hook of container paddle of mnist-worker-0 {how}"
    assert stage.supervisor.take() == ["kill paddle"]
    stage.exit("paddle", 137)
    assert seen(stage) == (PodPhase.FAILED, 137, HOOK_FAILED, f"its postStart hook {how}\nno such directory")


def test_a_program_that_ran_out_of_memory_is_not_blamed_on_its_hook(make: Make):
    stage = make(containers=[hooked(postStart=["touch", "x"])])
    stage.run()
    stage.exit("paddle.postStart", 2)
    stage.exit("paddle", 137, oom=True)
    assert stage.pod.seen.reason == "OOMKilled"


def test_the_hook_of_another_container_fails_that_container_only(make: Make):
    stage = make(containers=[container(), hooked("logger", postStart=["x"])])
    stage.run("paddle", "logger")
    stage.exit("logger.postStart", 2)
    assert stage.supervisor.take() == ["kill logger"]
    stage.exit("paddle", 1)
    assert seen(stage)[:3] == (PodPhase.FAILED, 1, "")


def test_a_post_start_hook_that_succeeds_or_ends_with_its_pod_is_no_failure(make: Make):
    for code, delete in ((0, False), (143, True)):
        stage = make(containers=[hooked(postStart=["true"])])
        stage.run()
        stage.report("paddle.postStart", started=2)
        if delete:
            stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
            stage.supervisor.take()
        stage.exit("paddle.postStart", code)
        assert (stage.pod.note, stage.supervisor.take()) == ("", [])
        assert stage.pod.seen.phase is PodPhase.RUNNING
        stage.close()


def test_a_container_that_starts_while_its_pod_ends_gets_no_hook(make: Make):
    stage = make(containers=[hooked(postStart=["true"])])
    stage.bind()
    stage.publish()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    stage.supervisor.take()
    stage.report("paddle", started=1)
    assert stage.supervisor.take() == []


HOOK = "the preStop hook of container paddle of mnist-worker-0"


@pytest.mark.parametrize(
    ("reports", "note"),
    [
        ([{"started": 2}, {"ended": 0, "oom": False}], ""),
        ([{"started": 2}, {"ended": 4, "oom": False}], f"{HOOK} failed with exit status 4"),
        ([{"failed": "no such command"}], f"{HOOK} could not start: no such command"),
    ],
)
def test_a_program_is_asked_to_end_once_after_its_pre_stop_hook_however_that_ends(
    make: Make, reports: list[dict[str, Any]], note: str
):
    stage = make(containers=[hooked(preStop=["save"])])
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == ["start paddle.preStop"]
    for report in (*reports, {"gone": True}):
        stage.report("paddle.preStop", **report)
    assert (stage.pod.note, stage.supervisor.take()) == (note, ["terminate paddle"])
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == []


def test_a_pre_stop_hook_that_hangs_is_killed_with_its_container(make: Make, timers: Timers):
    stage = make(containers=[hooked(preStop=["hang"])])
    stage.run()
    stage.kubelet.delete(stage.local, "mnist-worker-0", "uid-1")
    stage.report("paddle.preStop", started=2)
    stage.supervisor.take()
    timers.pass_(GRACE)
    assert sorted(stage.supervisor.take()) == ["kill paddle", "kill paddle.preStop"]


def test_a_program_that_has_ended_needs_no_pre_stop_hook(make: Make):
    stage = make(containers=[hooked(preStop=["save"])])
    stage.run()
    stage.exit("paddle", 0)
    assert "start paddle.preStop" not in stage.supervisor.take()


SAVE = {"exec": {"command": ["save"]}}


@pytest.mark.parametrize(
    ("lifecycle", "command"),
    [
        ({"preStop": {"sleep": {"seconds": 5}}}, ["sleep", "5"]),
        ({"preStop": {"sleep": {"seconds": None, "unit": "s"}}}, ["sleep", "0"]),
        ({"preStop": {**SAVE, "sleep": {"seconds": 5}}}, ["save"]),
        (None, None),
        ({"postStart": SAVE}, None),
        ({"preStop": None}, None),
        ({"preStop": {"exec": None}}, None),
        ({"preStop": {"exec": {"command": None}}}, None),
    ],
)
def test_a_hook_is_a_container_of_its_own_that_shares_what_its_container_has(
    lifecycle: dict[str, Any] | None, command: list[str] | None
):
    left_out = {"restartPolicy": "Always", "args": ["--fast"], "terminationMessagePath": "/why"}
    made = {"name": "proxy", "image": "mine", "env": [{"name": "A"}], "lifecycle": lifecycle, **left_out}
    expected = {"name": "proxy.preStop", "image": "mine", "env": [{"name": "A"}], "command": command}
    assert hook_of(made, "preStop") == (expected if command else None)
    assert hook_of({"name": "proxy"}, "preStop") is hook_of(None, "preStop") is None
