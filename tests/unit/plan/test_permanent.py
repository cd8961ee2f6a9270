"""Failures that another attempt cannot heal end the job at once; all others are restarted and counted."""

from __future__ import annotations

import pytest

from paddlejob.api.types import Phase
from paddlejob.plan import PodPhase
from tests.support.builders import job
from tests.support.model import Model

OCI = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
WRONG_COMMANDS = {
    "not in PATH": OCI + 'unable to start container process: exec: "trian": executable file not found in $PATH',
    "no such file": OCI + 'unable to start container process: exec: "/trian": stat /trian: no such file or directory',
    "not executable": OCI + 'unable to start container process: exec: "./train.py": permission denied: unknown',
    "a directory": OCI + 'unable to start container process: exec: "/app": is a directory: unknown',
    "crun": "crun: executable file `trian` not found in $PATH: No such file or directory: OCI runtime error",
    "no working directory": OCI + 'chdir to cwd ("/data") set in config.json failed: not a directory: unknown',
    "on this machine": "trian.py: no such command",
    "not executable on this machine": "./train.py: Permission denied",
    "no interpreter on this machine": "./start.sh: needs /bin/zsh, which does not exist",
}
FAULTS_OF_A_NODE = {
    "a slow node": "failed to create shim task: context deadline exceeded",
    "a broken GPU": OCI + "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
    "a mount that vanished": OCI + "error mounting /var/lib/kubelet/pods/x: no such file or directory: unknown",
    "no memory": OCI + "unable to start container process: fork/exec: cannot allocate memory",
    "a full disk": "[Errno 28] No space left on device",
}


async def at_the_barrier(**options: object) -> Model:
    """The pods are about to start."""
    model = Model(job(**options))
    await model.step()
    model.tick()
    await model.step()
    assert model.status.publishedAttempt == 1
    return model


def not_started(model: Model, name: str, message: str, reason: str = "StartError") -> None:
    model.change(name, phase=PodPhase.FAILED, exit_code=128, reason=reason, message=message)


@pytest.mark.parametrize("message", WRONG_COMMANDS.values(), ids=WRONG_COMMANDS)
async def test_a_command_that_cannot_be_executed_fails_the_job_at_once(message: str):
    model = await at_the_barrier()
    not_started(model, "mnist-worker-1", message)
    await model.settle()
    assert (model.status.phase, model.status.reason, model.status.restarts) == ("Failed", "StartError", 0)
    assert "mnist-worker-1 could not start" in model.status.message
    assert "correct its command or image" in model.status.message


async def test_what_a_command_needs_is_to_be_installed():
    model = await at_the_barrier()
    not_started(model, "mnist-worker-1", WRONG_COMMANDS["no interpreter on this machine"])
    await model.settle()
    assert model.status.message.endswith(
        "./start.sh: needs /bin/zsh, which does not exist; install it, or correct its command or image"
    )


async def test_a_hook_that_failed_is_the_cause_and_its_output_follows():
    """It may have waited for a service that was down, so the job is restarted."""
    model = await at_the_barrier(backoffLimit=1)
    for _ in range(2):
        while model.status.publishedAttempt < model.status.attempt or not model.status.attempt:
            model.now += 1
            await model.step()
            model.tick()
        message = "its postStart hook failed with exit status 3\nno license server"
        model.change(
            "mnist-worker-1", phase=PodPhase.FAILED, exit_code=137, reason="PostStartHookError", message=message
        )
        await model.step()
    assert (model.status.phase, model.status.restarts) == ("Failed", 1)
    headline, _, output = model.status.message.partition("\n")
    assert headline.startswith(
        "mnist-worker-1 was killed: its postStart hook failed with exit status 3; correct the hook; "
    )
    assert output == "no license server"


@pytest.mark.parametrize("message", FAULTS_OF_A_NODE.values(), ids=FAULTS_OF_A_NODE)
async def test_what_may_be_the_fault_of_a_node_is_tried_again(message: str):
    model = await at_the_barrier()
    not_started(model, "mnist-worker-1", message)
    await model.settle()
    assert (model.status.phase, model.status.restarts) == ("Running", 1)


async def test_a_job_that_has_trained_before_is_restarted_whatever_the_node_says():
    """The command did exist; the node may lack a volume."""
    model = Model(job())
    await model.settle()
    model.now += 3600
    model.end("mnist-worker-0", 1, message="ValueError")
    while model.status.publishedAttempt < 2:
        model.now += 1
        await model.step()
        model.tick()
    not_started(model, "mnist-worker-1", WRONG_COMMANDS["no such file"])
    await model.settle()
    assert (model.status.phase, model.status.restarts) == ("Running", 2)


async def test_the_command_is_blamed_and_not_the_peer_that_failed_because_of_it():
    model = await at_the_barrier()
    model.change("mnist-worker-0", phase=PodPhase.FAILED, exit_code=1, message="ConnectionError: no peer")
    not_started(model, "mnist-worker-1", WRONG_COMMANDS["not in PATH"])
    await model.settle()
    assert (model.status.phase, model.status.reason) == ("Failed", "StartError")


async def test_a_template_that_this_engine_cannot_run_fails_the_job_at_once():
    model = await at_the_barrier()
    not_started(model, "mnist-worker-0", "ConfigMap x does not exist; add it to the job file", "InvalidTemplate")
    await model.settle()
    assert (model.status.phase, model.status.reason, model.status.restarts) == ("Failed", "InvalidTemplate", 0)
    assert "mnist-worker-0 cannot start: ConfigMap x does not exist; add it" in model.status.message


@pytest.mark.parametrize(
    ("code", "output"),
    [
        (127, "sh: 1: trian: not found"),
        (127, "bash: line 1: trian: command not found\n"),
        (126, "sh: 1: ./train.sh: Permission denied"),
        (127, "env: 'python4': No such file or directory"),
    ],
)
async def test_a_shell_that_does_not_find_the_command_fails_the_job_at_once(code: int, output: str):
    model = Model(job())
    await model.settle()
    model.end("mnist-worker-0", code, message=f"starting\n{output}")
    await model.settle()
    assert (model.status.phase, model.status.reason, model.status.restarts) == ("Failed", "CommandNotFound", 0)
    assert f"exit status {code}" in model.status.message.splitlines()[0]
    assert "correct its command or image" in model.status.message.splitlines()[0]
    assert output.strip() in model.status.message


@pytest.mark.parametrize(
    ("code", "output", "trained"),
    [
        (127, "libcuda.so: no version information", 0),
        (1, "sh: 1: trian: not found", 0),
        (127, "sh: 1: upload-model: not found", 3600),
        (1, "ModuleNotFoundError: No module named 'visualdl'", 3600),
        (137, "ModuleNotFoundError: No module named 'visualdl'", 0),
    ],
    ids=[
        "127 for another reason",
        "a script that goes on",
        "a command after an hour",
        "a module after an hour",
        "killed",
    ],
)
async def test_other_failures_are_restarted(code: int, output: str, trained: float):
    model = Model(job())
    await model.settle()
    model.now += trained
    model.end("mnist-worker-0", code, message=output)
    await model.settle()
    assert (model.status.phase, model.status.restarts) == (Phase.RUNNING, 1)
