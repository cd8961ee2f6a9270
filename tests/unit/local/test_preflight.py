"""Everything that this machine cannot do is reported before anything starts, with what to change."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.types import PaddleJob
from paddlejob.local.machine.gpu_locks import lock_gpus
from paddlejob.local.machine.resources import Machine
from paddlejob.local.options import RunOptions
from paddlejob.local.preflight import PreflightResult, has_paddle, on_the_cpu, preflight
from paddlejob.local.state.store import JobStore
from tests.support.builders import document, template
from tests.support.fake_gpus import fake_gpus
from tests.support.interpreters import interpreter

Manifest = dict[str, Any]
SMALL = Machine("laptop", cpus=2, memory=4 << 30)
TRUE = {"name": "paddle", "image": "mine", "command": ["true"]}
NO_EFFECT = "No effect on one machine, only on a cluster:"


def check(
    root: Path, wanted: Manifest, machine: Machine = SMALL, isolated: bool = True, **options: Any
) -> PreflightResult:
    chosen = RunOptions(**{"folder": str(root), **options})
    job, store = PaddleJob.model_validate(wanted), JobStore(root / "state")
    return preflight(job, chosen, store, machine, isolated, "not permitted")


def job(*containers: Manifest, **pod: Any) -> Manifest:
    """One worker with these containers; the first is the training container."""
    made = [{**TRUE, "name": f"c{n}" if n else "paddle", **one} for n, one in enumerate(containers or ({},))]
    return document("mnist", workers=1, worker_={"template": {"spec": {"containers": made, **pod}}})


def limited(**limits: Any) -> Manifest:
    return {"resources": {"limits": {name.replace("gpu", "nvidia.com/gpu"): amount for name, amount in limits.items()}}}


def test_all_errors_are_reported_at_once_and_each_names_its_remedy(tmp_path: Path):
    wanted = job(
        limited(gpu=2, cpu=3, memory="64Gi"),
        nodeSelector={"accelerator": "p100"},
        volumes=[{"name": "cloud", "awsElasticBlockStore": {"volumeID": "v"}}],
    )
    gpus, cpu, memory, node, volume = check(tmp_path, wanted).errors
    assert gpus == (
        "insufficient nvidia.com/gpu: the job requests 2 and this machine has none; train on the CPU with --cpu"
    )
    assert cpu.startswith("insufficient cpu: the job requests 3 and this machine has 2; lower requests or replicas, or")
    assert cpu.endswith("run it anyway with --overcommit")
    assert memory.startswith("insufficient memory: the job requests 64.0 GiB and this machine has 4.0 GiB;")
    assert node.startswith("spec.worker.template: nodeSelector accelerator=p100 does not match this machine; remove")
    assert volume.startswith("volume cloud: awsElasticBlockStore is not supported on one machine")
    assert len(check(tmp_path, wanted, overcommit=True).errors) == 3
    assert check(tmp_path, job(limited(cpu=2))).errors == [], "all of it may be used"


@pytest.mark.parametrize(
    ("requests", "cpu", "machine", "options", "found"),
    [
        (1, 1, SMALL, {}, "note"),
        (1, 1, SMALL, {"overcommit": True}, ""),
        (1, 1, Machine("pc", cpus=4, memory=1), {}, ""),
        (1, 2, Machine("pc", cpus=4, memory=1), {}, "note"),
        (3, 1, SMALL, {}, "error"),
    ],
)
def test_an_elastic_job_runs_with_the_workers_that_fit_if_enough_do(
    tmp_path: Path, requests: int, cpu: int, machine: Machine, options: Manifest, found: str
):
    made = template(**TRUE, resources={"limits": {"cpu": cpu, "example-resource": 9}})
    wanted = document("mnist", workers=4, elastic=1, worker_={"requests": requests, "template": made})
    result = check(tmp_path, wanted, machine, **options)
    note = f"cpu: the job requests {4 * cpu} and this machine has {machine.cpus}; it is elastic and trains with the"
    assert any(one.startswith(note) for one in result.notes) is (found == "note")
    error = f"insufficient cpu: the job requests {requests * cpu} and this machine has {machine.cpus}"
    assert [one.partition(";")[0] for one in result.errors] == ([error] if found == "error" else [])


def test_nodes_are_matched_by_the_labels_of_this_machine(tmp_path: Path):
    labels = {"kubernetes.io/hostname": "laptop", "kubernetes.io/os": "linux"}
    preferred = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert check(tmp_path, job(nodeSelector=labels, affinity=preferred)).errors == []
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
    (error,) = check(tmp_path, job(affinity=required)).errors
    assert "required nodeAffinity is not supported on one machine; remove it, or train on the CPU" in error


def test_a_job_that_requests_gpus_learns_why_there_are_fewer_than_expected(tmp_path: Path):
    machine = Machine("server", 8, 1 << 40, fake_gpus(1), "GPU 1 is hidden; unset CUDA_VISIBLE_DEVICES")
    found = check(tmp_path, job(limited(gpu=2)), machine)
    assert f"the job requests 2 and this machine has 1 ({machine.gpu_note}); train on the CPU" in found.errors[0]
    assert machine.gpu_note in found.notes
    assert machine.gpu_note not in check(tmp_path, job(), machine).notes
    (error,) = check(tmp_path, job({"resources": {"limits": {"amd.com/gpu": 1}}}), machine).errors
    assert "this machine has none; train on the CPU" in error
    assert check(tmp_path, job(limited(gpu=1)), machine).errors == []


def test_gpus_that_others_use_are_shared_only_with_overcommit_and_that_is_noted(tmp_path: Path):
    machine = Machine("m", 2, 1 << 30, fake_gpus(2))
    (held,) = lock_gpus(machine.gpus, 1)
    for wanted, overcommit, noted in ((2, True, True), (2, False, False), (1, True, False)):
        notes = check(tmp_path, job(limited(gpu=wanted)), machine, overcommit=overcommit).notes
        assert any("1 of 2 devices are in use by other jobs and are shared" in note for note in notes) is noted
    held.release()


def test_a_job_file_that_selects_gpus_itself_is_noted(tmp_path: Path):
    env = {"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]}
    machine = Machine("m", 2, 1 << 30, fake_gpus(1))
    note = "spec.worker: the job file sets CUDA_VISIBLE_DEVICES, which overrides the device assignment; remove it"
    assert note in check(tmp_path, job({**limited(gpu=1), **env}), machine).notes
    assert note not in check(tmp_path, job(env), machine).notes


def test_each_note_is_given_once_and_fields_without_effect_are_listed_in_order(tmp_path: Path):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "models"}}
    wanted = job({"readinessProbe": {"exec": {}}}, volumes=[claim], hostIPC=True)
    wanted["spec"]["ps"] = wanted["spec"]["worker"]
    wanted["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    managed, image, volume, fields = check(tmp_path, wanted).notes
    assert managed == f"{NO_EFFECT} managedBy kueue.x-k8s.io/multikueue."
    assert image.startswith("Image mine is not used locally")
    assert "--volume models=DIR" in volume
    assert fields == f"{NO_EFFECT} hostIPC, readinessProbe."
    ours = {"managedBy": "batch.paddlepaddle.org/operator"}
    assert not [one for one in check(tmp_path, job() | {"spec": job()["spec"] | ours}).notes if NO_EFFECT in one]


def test_without_mount_namespaces_every_mount_but_shared_memory_is_an_error(tmp_path: Path):
    mounts = [{"name": "a", "mountPath": "/data"}, {"name": "a", "mountPath": "/dev/shm/"}]
    wanted, options = job({"volumeMounts": mounts}, volumes=[{"name": "a", "emptyDir": {}}]), {"/nas": "/tmp"}
    found = check(tmp_path, wanted, isolated=False, volumes=options)
    assert [error.partition(": ")[0] for error in found.errors] == [
        "mountPath /data cannot be mounted",
        "/nas cannot be mounted",
    ]
    assert "(not permitted)" in found.errors[0]
    assert any("/dev/shm is shared with the machine" in note for note in found.notes)
    found = check(tmp_path, wanted, volumes=options)
    assert (found.errors, [note for note in found.notes if "/dev/shm" in note]) == ([], [])


def test_a_directory_at_a_file_is_an_error_but_neither_one_file_of_it_nor_a_path_below_another_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.cfg"
    file.touch()

    def errors(*mounts: dict[str, str]) -> list[str]:
        volumes = [{"name": "data", "emptyDir": {}}, {"name": "file", "hostPath": {"path": str(file)}}]
        return check(tmp_path, job({"volumeMounts": list(mounts)}, volumes=volumes)).errors

    at_the_file = {"name": "data", "mountPath": str(file)}
    (error,) = errors(at_the_file)
    assert error.startswith(f"mountPath {file} is a file on this machine")
    for change in ({"subPath": "a"}, {"subPathExpr": "a"}, {"name": "file"}):
        assert errors(at_the_file | change) == []
    assert errors(at_the_file, {"name": "data", "mountPath": str(tmp_path)}) == []
    assert errors(at_the_file | {"mountPath": "train.cfg"}) == [], "it is mounted at /train.cfg"
    assert errors(at_the_file | {"mountPath": "/" + "x" * 300}) == [], "it cannot exist, and the start says so"


@pytest.mark.parametrize(
    ("container", "pod", "missing"),
    [
        ({"command": ["python", "train.py"]}, {}, True),
        ({"command": ["/usr/bin/python3.11", "-u", "train.py", "there.py"]}, {}, True),
        ({"command": ["python", "-m", "paddle.distributed.launch", "train.py"]}, {}, True),
        ({"command": ["python", "there.py"]}, {}, False),
        ({"command": ["python", "train"]}, {}, False),
        ({"command": ["python", "-u", "-W", "ignore", "train.py"]}, {}, True),
        ({"command": ["python", "tool", "--out", "train.py"]}, {}, False),
        ({"command": ["python", "-c", "import train.py"]}, {}, False),
        ({"command": ["python", "-m", "mine", "train.py"]}, {}, False),
        ({"command": ["bash", "train.py"]}, {}, False),
        ({"command": ["sh", "-c", "python train.py"]}, {}, False),
        ({"command": ["python", "train.py"], "workingDir": "/code"}, {}, False),
        (
            {"command": ["python", "train.py"], "volumeMounts": [{"name": "code", "mountPath": "/code"}]},
            {"volumes": [{"name": "code", "emptyDir": {}}]},
            False,
        ),
        ({"command": ["python", "train.py"]}, {"initContainers": [{**TRUE, "name": "a"}]}, False),
    ],
)
def test_a_script_that_python_would_not_find_is_an_error_unless_it_may_come_from_elsewhere(
    tmp_path: Path, container: Manifest, pod: Manifest, missing: bool
):
    (tmp_path / "there.py").touch()
    found = [one for one in check(tmp_path, job(container, **pod)).errors if "PaddlePaddle" not in one]
    error = f"train.py not found in {tmp_path}, the directory used for image mine; put it there, or choose another"
    assert [one.startswith(error) for one in found] == [True] * missing


def test_a_container_without_a_command_is_an_error(tmp_path: Path):
    (error,) = check(tmp_path, job({"command": []})).errors
    assert "container paddle has no command" in error


@pytest.mark.parametrize(
    ("container", "python", "paddle"),
    [
        ({"command": ["python", "-V"]}, True, False),
        ({"command": ["sh", "-c"], "args": ["exec python3 -V"]}, True, False),
        ({"command": ["ls"], "args": None}, False, False),
        ({"command": ["python", "-m", "mine"]}, True, False),
        ({"command": ["python", "-m", "paddle.distributed.launch"]}, True, True),
        ({"command": ["bash", "-c"], "args": ["python -m paddle.distributed.launch x.py"]}, True, True),
        ({"image": "paddlejob/mnist:v1", "command": []}, True, True),
        ({"image": "paddlejob/mnist:v1", "command": ["python3", "train.py"]}, True, True),
        ({"image": "paddlejob/mnist:v1", "command": ["ls"]}, False, False),
    ],
)
def test_a_missing_python_or_one_without_paddle_is_an_error_where_it_is_needed(
    tmp_path: Path, container: Manifest, python: bool, paddle: bool
):
    """An image that is gone does not keep the other containers from being checked."""
    absent, bare = tmp_path / "absent" / "python", tmp_path / "bare"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    wanted = job({"image": "gone"}, container)
    images = {"gone": {"directory": str(tmp_path / "gone")}}
    gone = f"image gone: {tmp_path / 'gone'} is not a directory"
    remedy = "activate another virtual environment, or choose a Python with --python"
    errors = check(tmp_path, wanted, images=images, python=str(absent)).errors
    assert errors == [gone, *([f"the Python {absent} does not exist; {remedy}"] if python else [])]
    errors = check(tmp_path, wanted, images=images, python=str(bare)).errors
    assert [one.partition(";")[0] for one in errors] == [
        gone,
        *([f"PaddlePaddle is not installed for {bare}"] if paddle else []),
    ]


def test_whether_an_interpreter_has_paddle_is_asked_of_itself(tmp_path: Path):
    assert not has_paddle(str(tmp_path / "absent"))
    assert has_paddle(interpreter(tmp_path / "python3")) == has_paddle(sys.executable)


def test_on_the_cpu_each_role_loses_what_asks_for_gpus_or_chooses_a_node():
    made = document(ps=1, workers=1, heter=1)
    resources = {"limits": {"nvidia.com/gpu": 2, "cpu": 1}, "requests": {"nvidia.com/gpu": 2}, "claims": []}
    for role in ("ps", "worker", "heter"):
        pod = made["spec"][role]["template"]["spec"]
        pod["nodeSelector"], pod["affinity"] = {"gpu": "yes"}, {"nodeAffinity": {"x": 1}, "podAffinity": {"y": 1}}
        pod["containers"][0]["resources"] = copy.deepcopy(resources)
    changed, removed = on_the_cpu(made)
    assert removed == [
        f"{role}: {what}" for role in ("ps", "worker", "heter")
        for what in ("nvidia.com/gpu 2", "nvidia.com/gpu 2", "nodeSelector", "nodeAffinity")
    ]  # fmt: skip
    pod = changed["spec"]["heter"]["template"]["spec"]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": 1}, "requests": {}}
    assert (pod["affinity"], "nodeSelector" in pod) == ({"podAffinity": {"y": 1}}, False)
    assert "nodeSelector" in made["spec"]["ps"]["template"]["spec"], "the user's own document does not change"


def test_on_the_cpu_a_job_has_no_claims_of_devices():
    made = template(resources={"claims": [{"name": "gpu"}], "limits": {"cpu": 1}})
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    changed, removed = on_the_cpu(document(worker_={"template": made}))
    assert removed == ["worker: resourceClaims"]
    container = changed["spec"]["worker"]["template"]["spec"]["containers"][0]
    assert (container["resources"], changed["spec"]["device"]) == ({"limits": {"cpu": 1}}, "cpu")


def test_a_document_that_is_not_complete_has_nothing_to_leave_out_on_the_cpu():
    odd = {"containers": [{"resources": None}, {"resources": {"limits": None}}], "affinity": None}
    for worker in (None, {}, {"template": {"spec": None}}, {"template": {"spec": odd}}):
        assert on_the_cpu({"spec": {"worker": worker}}) == ({"spec": {"worker": worker, "device": "cpu"}}, [])
