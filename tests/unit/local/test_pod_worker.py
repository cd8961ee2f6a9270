"""The life of one pod on this machine: what is started when, and how a pod ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.local.runtime import pod_worker
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
    stage.kubelet.sync()
    assert stage.supervisor.take() == ["start paddle", "start logger"]
    assert stage.pod.seen.phase is PodPhase.WAITING, "it runs when its program does"
    assert stage.kubelet.has_processes, "what is being started may run already"


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


def test_an_init_container_that_fails_fails_the_pod_with_its_output(make: Make):
    stage = make(initContainers=[container("fetch")])
    stage.bind()
    stage.report("fetch", started=1)
    log = stage.runtime.log(stage.pod, stage.pod.init_containers[0])
    log.write_text("no such bucket\n")
    stage.exit("fetch", 3)
    assert seen(stage) == (PodPhase.FAILED, 3, "", "init container fetch failed:\nno such bucket")
    stage.publish()
    assert stage.supervisor.take() == ["start fetch", "terminate fetch"], "and what it started ends with it"


def test_an_init_container_killed_over_memory_names_the_reason(make: Make):
    stage = make(initContainers=[container("fetch")])
    stage.bind()
    stage.report("fetch", started=1)
    stage.exit("fetch", 137, oom=True)
    assert seen(stage)[:3] == (PodPhase.FAILED, 137, "OOMKilled")


@pytest.mark.parametrize(("code", "phase"), [(0, PodPhase.SUCCEEDED), (1, PodPhase.FAILED)])
def test_a_pod_ends_with_its_program_and_takes_its_other_containers_along(make: Make, code: int, phase: PodPhase):
    stage = make(containers=[container("logger"), container()])
    stage.run("logger", "paddle")
    stage.now = NOON + 60
    stage.report("paddle", ended=code, oom=False)
    assert seen(stage)[:3] == (phase, code, "")
    assert "terminate logger" in stage.supervisor.take()
    assert stage.kubelet.has_processes
    stage.exit("logger", 143)
    stage.report("paddle", gone=True)
    assert not stage.kubelet.has_processes
    assert seen(stage)[:3] == (phase, code, "")
    assert stage.pod.record(Path("log")).ended == "2027-01-15T08:01:00Z"
    assert stage.pod.note == "", "that the others ended is no failure"


def test_a_failed_program_leaves_the_end_of_its_log_and_one_that_succeeded_does_not(make: Make):
    for code, message in ((1, "loss is nan"), (0, "")):
        stage = make()
        stage.run()
        stage.runtime.log(stage.pod, TRAINER).write_text("loss is nan\n")
        stage.exit("paddle", code)
        assert stage.pod.seen.message == message
        stage.close()


def test_a_termination_message_is_preferred_to_the_log(make: Make):
    stage = make(containers=[container(terminationMessagePath="/dev/termination-log")])
    stage.run()
    stage.runtime.log(stage.pod, TRAINER).write_text("much output\n")
    (stage.pod.own / "termination" / "paddle").write_text("the last word\n")
    stage.exit("paddle", 1)
    assert stage.pod.seen.message == "the last word"


def test_a_full_disk_is_named_beside_the_end_of_the_log(make: Make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pod_worker, "LEAST_FREE", 1 << 60)
    stage = make()
    stage.run()
    stage.runtime.log(stage.pod, TRAINER).write_text("cannot write the model\n")
    stage.exit("paddle", 1)
    assert "cannot write the model\nthe disk is full" in stage.pod.seen.message


def test_a_training_container_that_vanishes_without_a_status_was_killed(make: Make):
    stage = make()
    stage.run()
    stage.report("paddle", gone=True)
    assert seen(stage)[:2] == (PodPhase.FAILED, 137)


def test_a_program_that_cannot_be_started_fails_the_pod(make: Make):
    stage = make(containers=[container(), container("logger")])
    stage.bind()
    stage.publish()
    stage.report("logger", started=2)
    stage.supervisor.take()
    stage.report("paddle", failed="python: no such command")
    assert seen(stage) == (PodPhase.FAILED, 128, "StartError", "python: no such command")
    assert "terminate logger" in stage.supervisor.take()


def test_an_init_container_that_cannot_be_started_fails_the_pod(make: Make):
    stage = make(initContainers=[container("fetch")])
    stage.bind()
    stage.report("fetch", failed="fetch: no such command")
    assert seen(stage) == (PodPhase.FAILED, 128, "StartError", "fetch: no such command")


def test_another_container_that_cannot_be_started_or_fails_is_noted_and_training_continues(make: Make):
    stage = make(containers=[container(), container("logger"), container("exporter")])
    stage.run("paddle", "logger", "exporter")
    stage.report("logger", failed="no such command")
    assert stage.pod.note == "container logger of mnist-worker-0 could not start: no such command"
    stage.exit("exporter", 2)
    assert stage.pod.note == "container exporter of mnist-worker-0 failed with exit status 2; see its log"
    assert stage.pod.seen.phase is PodPhase.RUNNING
    assert stage.supervisor.take() == []


def test_another_container_that_completes_is_not_noted(make: Make):
    stage = make(containers=[container(), container("logger")])
    stage.run("paddle", "logger")
    stage.exit("logger", 0)
    assert stage.pod.note == ""
    assert stage.pod.seen.phase is PodPhase.RUNNING


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

    monkeypatch.setattr(stage.runtime, "prepare_volumes", broken)
    stage.bind()
    assert seen(stage)[2:] == ("StartError", "KeyError: 'volumes'; the traceback is in engine.log of the job")
    assert "Traceback" in capsys.readouterr().out


def test_a_stopped_pod_is_kept_and_its_program_has_its_grace_period(make: Make, timers: Timers):
    stage = make()
    stage.run()
    stage.kubelet.stop("mnist-worker-0", "uid-1")
    assert stage.pod.seen.stopping
    assert stage.supervisor.take() == ["terminate paddle"]
    timers.pass_(GRACE - 1)
    assert stage.supervisor.take() == []
    timers.pass_(1)
    assert stage.supervisor.take() == ["kill paddle"]
    stage.exit("paddle", 137)
    assert seen(stage)[:3] == (PodPhase.FAILED, 137, "DeadlineExceeded")
    assert stage.pod.record(Path("log")).state == "Stopped"
    assert "mnist-worker-0" in stage.objects.pods


def test_a_pod_that_is_stopped_before_its_program_runs_ends_at_once(make: Make):
    stage = make()
    stage.bind()
    stage.kubelet.stop("mnist-worker-0", "uid-1")
    assert seen(stage) == (PodPhase.FAILED, None, "DeadlineExceeded", "")
    stage.publish()
    assert stage.supervisor.take() == []


def test_stopping_a_pod_that_has_ended_does_not_change_how_it_ended(make: Make):
    stage = make()
    stage.run()
    stage.exit("paddle", 0)
    stage.kubelet.stop("mnist-worker-0", "uid-1")
    assert seen(stage)[:3] == (PodPhase.SUCCEEDED, 0, "")


def test_a_pod_that_is_stopped_while_it_initializes_ends_with_its_init_container(make: Make):
    stage = make(initContainers=[container("fetch")])
    stage.bind()
    stage.report("fetch", started=1)
    stage.kubelet.stop("mnist-worker-0", "uid-1")
    stage.exit("fetch", 0)
    assert seen(stage)[:3] == (PodPhase.FAILED, None, "DeadlineExceeded")
    assert stage.supervisor.take() == ["start fetch", "terminate fetch"]


def test_how_a_deleted_program_ends_says_nothing_about_it(make: Make):
    stage = make()
    stage.run()
    stage.kubelet.delete("mnist-worker-0", "uid-1")
    stage.report("paddle", ended=143, oom=False)
    assert stage.pod.seen.phase is PodPhase.RUNNING
    assert stage.pod.seen.exit_code is None


def test_a_pod_over_its_memory_is_killed_at_once_and_says_so(make: Make, timers: Timers):
    stage = make()
    stage.run()
    stage.kubelet.kill_over_memory(stage.pod)
    assert stage.supervisor.take() == ["kill paddle"]
    assert timers.delays == []
    stage.exit("paddle", 137)
    assert seen(stage)[:3] == (PodPhase.FAILED, 137, "OOMKilled")


def test_killing_everything_waits_for_no_grace_period(make: Make, timers: Timers):
    stage = make(containers=[container(), container("logger")])
    stage.run("paddle", "logger")
    stage.kubelet.kill_all()
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
    stage.kubelet.delete("mnist-worker-0", "uid-1")
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


@pytest.mark.parametrize("how", ["ended", "ending", "removed", "restarted"])
def test_a_sidecar_is_not_started_again_when_its_pod_no_longer_needs_it(make: Make, timers: Timers, how: str):
    stage = make(initContainers=[SIDECAR])
    stage.bind()
    stage.report("proxy", started=1)
    stage.exit("proxy", 1)
    match how:
        case "ended":
            stage.objects.update(stage.pod, phase=PodPhase.FAILED)
        case "ending":
            stage.pod.ending = True
        case "removed":
            stage.objects.remove(stage.pod)
        case "restarted":
            stage.pod.alive["proxy"] = 9
    stage.supervisor.take()
    timers.pass_(60)
    assert stage.supervisor.take() == []


def test_a_sidecar_whose_pod_has_ended_is_not_started_again(make: Make, timers: Timers):
    stage = make(initContainers=[SIDECAR])
    stage.bind()
    stage.report("proxy", started=1)
    stage.publish()
    stage.report("paddle", started=2)
    stage.exit("paddle", 0)
    stage.exit("proxy", 143)
    stage.supervisor.take()
    timers.pass_(60)
    assert stage.supervisor.take() == []
    assert stage.pod.note == ""


def hooked(**hooks: Any) -> dict[str, Any]:
    return container(lifecycle={kind: {"exec": {"command": command}} for kind, command in hooks.items()})


def test_a_post_start_hook_runs_beside_its_container_and_one_that_fails_kills_it(make: Make):
    stage = make(containers=[hooked(postStart=["touch", "x"])])
    stage.bind()
    stage.publish()
    stage.report("paddle", started=1)
    assert stage.supervisor.take() == ["start paddle", "start paddle.postStart"]
    assert stage.supervisor.started["paddle.postStart"]["argv"] == ["touch", "x"]
    stage.report("paddle.postStart", started=2)
    stage.runtime.log(stage.pod, {"name": "paddle.postStart"}).write_text("no such directory\n")
    stage.exit("paddle.postStart", 1)
    assert stage.pod.note == "the postStart hook of container paddle of mnist-worker-0 failed with exit status 1"
    assert stage.supervisor.take() == ["kill paddle"]
    stage.exit("paddle", 137)
    message = "its postStart hook failed with exit status 1\nno such directory"
    assert seen(stage) == (PodPhase.FAILED, 137, HOOK_FAILED, message)


def test_a_post_start_hook_that_succeeds_changes_nothing(make: Make):
    stage = make(containers=[hooked(postStart=["true"])])
    stage.run()
    stage.report("paddle.postStart", started=2)
    stage.exit("paddle.postStart", 0)
    assert (stage.pod.note, stage.supervisor.take()) == ("", [])
    assert stage.pod.seen.phase is PodPhase.RUNNING


def test_a_post_start_hook_that_ends_with_its_pod_is_no_failure(make: Make):
    stage = make(containers=[hooked(postStart=["sleep", "9"])])
    stage.run()
    stage.report("paddle.postStart", started=2)
    stage.kubelet.delete("mnist-worker-0", "uid-1")
    stage.exit("paddle.postStart", 143)
    assert stage.pod.note == ""


def test_a_container_that_starts_while_its_pod_ends_gets_no_hook(make: Make):
    stage = make(containers=[hooked(postStart=["true"])])
    stage.bind()
    stage.publish()
    stage.kubelet.delete("mnist-worker-0", "uid-1")
    stage.supervisor.take()
    stage.report("paddle", started=1)
    assert stage.supervisor.take() == []


def test_a_program_is_asked_to_end_after_its_pre_stop_hook_and_once(make: Make, timers: Timers):
    stage = make(containers=[hooked(preStop=["save"])])
    stage.run()
    stage.kubelet.delete("mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == ["start paddle.preStop"]
    stage.report("paddle.preStop", started=2)
    stage.exit("paddle.preStop", 0)
    assert stage.supervisor.take() == ["terminate paddle"]
    stage.kubelet.delete("mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == []


def test_a_pre_stop_hook_that_fails_is_noted_and_the_program_is_asked_to_end_all_the_same(make: Make):
    stage = make(containers=[hooked(preStop=["save"])])
    stage.run()
    stage.kubelet.stop("mnist-worker-0", "uid-1")
    stage.report("paddle.preStop", started=2)
    stage.supervisor.take()
    stage.exit("paddle.preStop", 4)
    assert stage.pod.note == "the preStop hook of container paddle of mnist-worker-0 failed with exit status 4"
    assert stage.supervisor.take() == ["terminate paddle"]


def test_a_pre_stop_hook_that_hangs_is_killed_with_its_container(make: Make, timers: Timers):
    stage = make(containers=[hooked(preStop=["hang"])])
    stage.run()
    stage.kubelet.delete("mnist-worker-0", "uid-1")
    stage.report("paddle.preStop", started=2)
    stage.supervisor.take()
    timers.pass_(GRACE)
    assert sorted(stage.supervisor.take()) == ["kill paddle", "kill paddle.preStop"]


def test_a_program_that_has_ended_needs_no_pre_stop_hook(make: Make):
    stage = make(containers=[hooked(preStop=["save"])])
    stage.run()
    stage.exit("paddle", 0)
    assert "start paddle.preStop" not in stage.supervisor.take()


def test_a_hook_may_be_a_pause(make: Make):
    stage = make(containers=[container(args=["--fast"], lifecycle={"preStop": {"sleep": {"seconds": 3}}})])
    stage.run()
    stage.kubelet.delete("mnist-worker-0", "uid-1")
    assert stage.supervisor.started["paddle.preStop"]["argv"] == ["sleep", "3"]
