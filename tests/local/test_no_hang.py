"""Whatever a template says, a job ends with a reason, and other jobs of the same engine are not affected."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.pdj import Pdj, send, wait

TRUE = ["true"]
FOREVER = ["sleep", "300"]


def init(command: list[str], name: str = "prepare", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "program", "command": command, **fields}


def sidecar(script: str, name: str = "logger") -> dict[str, Any]:
    return init(["bash", "-c", script], name, restartPolicy="Always")


def with_objects(file: str, *objects: dict[str, Any]) -> str:
    path = Path(file)
    path.write_text("---\n".join([path.read_text(), *(yaml.safe_dump(one) for one in objects)]))
    return file


def rejected(pdj: Pdj, file: str) -> str:
    done = pdj("run", file)
    assert done.returncode in (1, 2), done
    assert "Traceback" not in done.stderr
    assert not list(pdj.store.folders()), "the job was stored"
    return done.stderr


def test_a_native_sidecar_runs_beside_the_program_and_ends_after_it(pdj: Pdj):
    trap = "trap 'echo ended >> order; exit' TERM; echo started >> order; while true; do sleep 0.05; done"
    program = ["bash", "-c", "until grep -q started order; do sleep 0.05; done; echo trained >> order"]
    file = pdj.write(command=program, pod={"initContainers": [sidecar(trap), init(["true"], "after")]})
    done = pdj("run", file)
    assert done.returncode == 0, done.stderr
    assert (pdj.folder / "order").read_text().split() == ["started", "trained", "ended"]


def test_a_native_sidecar_that_crashes_is_restarted_and_shown(pdj: Pdj):
    crash = "echo up >> ups; [ $(wc -l < ups) -ge 2 ] && exec sleep 300; exit 3"
    program = ["bash", "-c", "until [ $(wc -l < ups) -ge 2 ]; do sleep 0.05; done 2> /dev/null"]
    done = pdj("run", pdj.write(command=program, pod={"initContainers": [sidecar(crash)]}))
    assert done.returncode == 0, done.stderr
    assert "container logger of job-worker-0 failed with exit status 3" in pdj("get", "job").stdout


def test_the_program_starts_while_a_hook_of_a_sidecar_still_runs(pdj: Pdj):
    keeper = sidecar("while true; do sleep 0.1; done", "keeper")
    keeper["lifecycle"] = {"postStart": {"exec": {"command": FOREVER}}}
    pod = {"initContainers": [keeper], "terminationGracePeriodSeconds": 0}
    done = pdj("run", pdj.write(command=TRUE, pod=pod))
    assert done.returncode == 0, done.stderr


def test_an_init_container_over_its_memory_limit_fails_the_pod(pdj: Pdj):
    hungry = init(["python3", "-c", "import time; x = bytearray(300 << 20); time.sleep(300)"])
    hungry["resources"] = {"limits": {"memory": "100Mi"}}
    failed = pdj("run", pdj.write(command=TRUE, backoffLimit=0, pod={"initContainers": [hungry]}))
    assert failed.returncode == 1
    assert "memory" in failed.stderr
    assert "prepare" in failed.stderr


def test_an_init_container_that_is_killed_fails_the_pod(pdj: Pdj):
    killed = init(["bash", "-c", "kill -9 $$"])
    failed = pdj("run", pdj.write(command=TRUE, backoffLimit=0, pod={"initContainers": [killed]}))
    assert "init container prepare" in failed.stderr


def test_a_deadline_takes_effect_while_init_containers_run(pdj: Pdj):
    stubborn = init(["bash", "-c", "trap '' TERM; while true; do sleep 0.1; done"])
    pod = {"initContainers": [stubborn], "terminationGracePeriodSeconds": 1}
    failed = pdj("run", pdj.write(command=TRUE, activeDeadlineSeconds=2, cleanPodPolicy="Never", pod=pod))
    assert "DeadlineExceeded" in failed.stderr
    assert pdj.log("job", "worker-0") == ""


def test_an_init_container_that_ends_on_the_deadline_starts_nothing_else(pdj: Pdj):
    polite = init(["bash", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"])
    pod = {"initContainers": [polite, init(["touch", "ran"], "second")]}
    file = pdj.write(command=TRUE, activeDeadlineSeconds=2, cleanPodPolicy="Never", pod=pod)
    assert "DeadlineExceeded" in pdj("run", file).stderr
    assert not (pdj.folder / "ran").exists()


def stored(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


RATES = stored("ConfigMap", "rates", data={"lr": "0.1"})
FROM_RATES = {"envFrom": [{"configMapRef": {"name": "rates"}}]}
LACKING = [{"name": "LR", "valueFrom": {"configMapKeyRef": {"name": "rates", "key": "rate"}}}]
FILES = {"name": "files", "configMap": {"name": "rates", "items": [{"key": "momentum", "path": "m"}]}}


@pytest.mark.parametrize(
    ("container", "pod", "objects", "messages"),
    [
        ({"volumeMounts": [{"name": "dta", "mountPath": "/n"}]}, {"volumes": [{"name": "d"}]}, [], ["dta"]),
        ({}, {"initContainers": [init(TRUE, "paddle")]}, [], ["paddle"]),
        (
            FROM_RATES,
            {},
            [stored("ConfigMap", "rates", data={"lr": 0.1})],
            ['data.lr: values are strings; write "0.1" in quotes (ConfigMap rates)'],
        ),
        (
            {"env": LACKING},
            {"volumes": [FILES]},
            [RATES],
            ["ConfigMap rates has no key rate", "ConfigMap rates has no key momentum"],
        ),
        (
            {"envFrom": [{"secretRef": {"name": "key"}}]},
            {},
            [stored("Secret", "key", data={"token": "not base64!"})],
            ["data.token is not base64; encode it"],
        ),
    ],
)
def test_a_reference_to_nothing_and_an_object_that_cannot_be_used_are_rejected(
    pdj: Pdj, container: dict[str, Any], pod: dict[str, Any], objects: list[dict[str, Any]], messages: list[str]
):
    output = rejected(pdj, with_objects(pdj.write(command=TRUE, container=container, pod=pod), *objects))
    for message in messages:
        assert message in output


def test_bytes_of_a_config_map_and_of_a_secret_reach_the_program_unchanged(pdj: Pdj):
    read = "import os; print(open('/of-a-test/w', 'rb').read() == os.environb[b'TOKEN'] == b'\\xff\\xfe\\xfd')"
    container = {
        "volumeMounts": [{"name": "model", "mountPath": "/of-a-test"}],
        "envFrom": [{"secretRef": {"name": "key"}}],
    }
    pod = {"volumes": [{"name": "model", "configMap": {"name": "model"}}]}
    objects = stored("ConfigMap", "model", binaryData={"w": "//79"}), stored("Secret", "key", data={"TOKEN": "//79"})
    file = with_objects(pdj.write(command=["python3", "-c", read], container=container, pod=pod), *objects)
    assert pdj("run", file).returncode == 0
    assert pdj.log("job", "worker-0") == "True\n"


def test_a_stored_job_whose_objects_cannot_be_used_fails_with_the_reason(pdj: Pdj):
    """A stored job that no check has seen, as an older version wrote it."""
    pdj("run", "-d", pdj.write("bad", command=FOREVER, backoffLimit=0))
    pdj.until("bad", phase="Running")
    pdj("suspend", "bad")
    pdj.until("bad", phase="Suspended")
    wait(lambda: not pdj.folder_of("bad").has_runner, lambda: "the end of the engine")
    path = pdj.folder_of("bad").path / "run.json"
    options = json.loads(path.read_text())
    options["objects"] = [{"kind": "Secret", "metadata": {"name": "key"}, "data": {"token": "not base64!"}}]
    path.write_text(json.dumps(options))
    assert pdj("resume", "bad").returncode == 0
    status = pdj.until("bad", phase="Failed")
    assert "bad-worker-0" in status.message
    assert "base64" in status.message


def test_an_error_in_a_turn_fails_that_job_and_names_the_log(pdj: Pdj):
    """The planner raises for one of two jobs: a defect, forced by a file that replaces a module's function."""
    (pdj.folder / "sitecustomize.py").write_text(
        "import paddlejob.local.scheduler as s\n"
        "real = s.Scheduler.schedule\n"
        "def schedule(self, objects, job, **options):\n"
        "    assert job.name != 'bad', 'a defect'\n"
        "    return real(self, objects, job, **options)\n"
        "s.Scheduler.schedule = schedule\n"
    )
    files = [Path(pdj.write(name, command=["echo", name])) for name in ("good", "bad")]
    (pdj.folder / "both.yaml").write_text("---\n".join(file.read_text() for file in files))
    pdj.environment["PYTHONPATH"] = os.pathsep.join([str(pdj.folder), os.environ.get("PYTHONPATH", "")])
    done = pdj("run", "both.yaml")
    assert done.returncode == 1
    assert pdj.status("good").phase == "Completed"
    status = pdj.status("bad")
    assert (status.phase, status.reason) == ("Failed", "EngineError")
    assert "a defect" in status.message
    assert "engine.log" in status.message
    assert "Traceback" in (pdj.folder_of("good").path / "engine.log").read_text()


def test_an_error_of_the_engine_itself_ends_the_run_with_a_message(pdj: Pdj):
    (pdj.folder / "sitecustomize.py").write_text(
        "import paddlejob.local.kubelet as k\n"
        "def enforce(self):\n"
        "    raise AssertionError('a torn report')\n"
        "k.Kubelet.enforce_memory_limits = enforce\n"
    )
    pdj.environment["PYTHONPATH"] = os.pathsep.join([str(pdj.folder), os.environ.get("PYTHONPATH", "")])
    done = pdj("run", pdj.write(command=FOREVER))
    assert done.returncode == 1
    assert "a torn report" in done.stderr
    assert "engine.log" in done.stderr
    pdj.until_nothing_lives()


def test_ctrl_c_works_while_an_init_container_runs(pdj: Pdj):
    running = pdj.start("run", pdj.write(command=TRUE, pod={"initContainers": [init(FOREVER)]}))
    log = pdj.folder_of("job").log(1, "job-worker-0", "prepare")
    wait(log.exists, lambda: "the init container")
    send(running, signal.SIGINT)
    assert running.wait(timeout=30) == 130
    pdj.until_nothing_lives()
