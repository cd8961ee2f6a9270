"""Containers that come back, hooks that cannot start, and pods that are stopped halfway."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.local.runtime.hooks import hook_of, is_hook
from paddlejob.plan import PodPhase
from paddlejob.plan.diagnosis.permanent import HOOK_FAILED
from tests.support.scripted_supervisor import Make, OnePod, Timers, container

pytestmark = pytest.mark.usefixtures("timers")


def hooked(name: str = "paddle", **fields: Any) -> dict[str, Any]:
    hooks = {kind: {"exec": {"command": [kind]}} for kind in ("postStart", "preStop")}
    return container(name, lifecycle=hooks, **fields)


SIDECAR = hooked("proxy", restartPolicy="Always")


def restarted(stage: OnePod, timers: Timers) -> None:
    """A sidecar has failed once, and runs again."""
    stage.bind()
    stage.report("proxy", started=1)
    stage.exit("proxy", 1)
    timers.pass_(60)
    stage.report("proxy", started=2)
    stage.pod.note = ""
    stage.supervisor.take()


def test_a_sidecar_that_vanishes_after_it_was_started_again_is_noted_too(make: Make, timers: Timers):
    stage = make(initContainers=[SIDECAR])
    restarted(stage, timers)
    stage.report("proxy", gone=True)
    assert stage.pod.note == "container proxy of mnist-worker-0 failed with exit status 137; see its log"


def test_a_sidecar_that_was_started_again_has_its_pre_stop_hook(make: Make, timers: Timers):
    saving = {"preStop": {"exec": {"command": ["save"]}}}
    stage = make(initContainers=[container("proxy", restartPolicy="Always", lifecycle=saving)])
    restarted(stage, timers)
    stage.kubelet.delete("mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == ["start proxy.preStop"]


def test_a_sidecar_that_ended_with_its_pod_is_not_noted_nor_started_again(make: Make, timers: Timers):
    stage = make(initContainers=[SIDECAR])
    restarted(stage, timers)
    stage.kubelet.delete("mnist-worker-0", "uid-1")
    stage.supervisor.take()
    stage.exit("proxy", 143)
    timers.pass_(600)
    assert [one for one in stage.supervisor.take() if one.startswith("start")] == []
    assert stage.pod.note == ""


def test_a_post_start_hook_that_cannot_start_kills_its_container_and_says_why(make: Make):
    stage = make(containers=[hooked()])
    stage.run()
    stage.report("paddle.postStart", failed="postStart: no such command")
    stage.report("paddle.postStart", gone=True)
    message = "could not start: postStart: no such command"
    assert stage.pod.note == f"the postStart hook of container paddle of mnist-worker-0 {message}"
    assert stage.supervisor.take() == ["kill paddle"]
    stage.exit("paddle", 137)
    seen = stage.pod.seen
    assert (seen.phase, seen.reason) == (PodPhase.FAILED, HOOK_FAILED)
    assert seen.message.startswith(f"its postStart hook {message}")


def test_a_pre_stop_hook_that_cannot_start_is_noted_and_the_program_ends(make: Make):
    stage = make(containers=[hooked()])
    stage.run()
    stage.kubelet.stop("mnist-worker-0", "uid-1")
    stage.supervisor.take()
    stage.report("paddle.preStop", failed="no such command")
    stage.report("paddle.preStop", gone=True)
    note = "the preStop hook of container paddle of mnist-worker-0 could not start: no such command"
    assert (stage.pod.note, stage.supervisor.take()) == (note, ["terminate paddle"])


def test_the_hook_of_another_container_fails_that_container_only(make: Make):
    stage = make(containers=[container(), hooked("logger")])
    stage.run("paddle", "logger")
    stage.report("logger.postStart", started=3)
    stage.exit("logger.postStart", 2)
    assert stage.supervisor.take() == ["kill logger"]
    assert stage.pod.failed_hook == ""
    stage.exit("paddle", 0)
    assert stage.pod.seen.phase is PodPhase.SUCCEEDED


def test_a_program_that_ran_out_of_memory_is_not_blamed_on_its_hook(make: Make):
    stage = make(containers=[hooked()])
    stage.run()
    stage.report("paddle.postStart", started=3)
    stage.exit("paddle.postStart", 2)
    stage.exit("paddle", 137, oom=True)
    assert stage.pod.seen.reason == "OOMKilled"


def test_a_pod_that_is_stopped_between_two_containers_ends_when_the_last_one_is_gone(make: Make):
    stage = make(initContainers=[container("proxy", restartPolicy="Always")])
    stage.bind()
    stage.report("proxy", started=1)
    stage.kubelet.stop("mnist-worker-0", "uid-1")
    assert stage.supervisor.take() == ["start proxy", "terminate proxy"]
    assert not stage.pod.seen.ended
    stage.exit("proxy", 143)
    seen = stage.pod.seen
    assert (seen.phase, seen.exit_code, seen.reason) == (PodPhase.FAILED, None, "DeadlineExceeded")


def test_a_hook_is_a_container_of_its_own_that_shares_what_its_container_has():
    more = {"restartPolicy": "Always", "args": ["--fast"], "terminationMessagePath": "/why"}
    whole = hooked("proxy", env=[{"name": "A"}], **more)
    assert hook_of(whole, "preStop") == {
        "name": "proxy.preStop",
        "image": "mine",
        "command": ["preStop"],
        "env": [{"name": "A"}],
    }
    assert is_hook("proxy.preStop")
    assert not is_hook("proxy")


@pytest.mark.parametrize(
    "lifecycle",
    [None, {}, {"preStop": None}, {"preStop": {"exec": None}}, {"preStop": {"exec": {"command": None}}}],
)
def test_a_container_without_a_command_to_run_has_no_hook(lifecycle: dict[str, Any] | None):
    assert hook_of({"name": "paddle", "lifecycle": lifecycle}, "preStop") is None
    assert hook_of({"name": "paddle"}, "preStop") is None
    assert hook_of(None, "preStop") is None


def test_a_pause_without_a_length_takes_no_time():
    for given, seconds in (({"seconds": 5}, "5"), ({"seconds": None, "unit": "s"}, "0")):
        hook = hook_of({"name": "paddle", "lifecycle": {"postStart": {"sleep": given}}}, "postStart")
        assert hook == {"name": "paddle.postStart", "command": ["sleep", seconds]}
    both = {"preStop": {"exec": {"command": ["save"]}, "sleep": {"seconds": 5}}}
    assert hook_of({"name": "paddle", "lifecycle": both}, "preStop") == {"name": "paddle.preStop", "command": ["save"]}
