"""`pdj submit` and `pdj code`, against an API server that answers as a test scripts it."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import yaml

from paddlejob import contract
from paddlejob.code.archive import pack
from tests.support.builders import document
from tests.support.cluster_verbs import Pdj
from tests.support.scripted_cluster import JOB, ScriptedCluster

RUNNING = {"phase": "Running", "reason": "Running", "message": "all pods are running", "attempt": 1}


ENDED = {
    "phase": "Completed",
    "message": "all workers succeeded",
    "attempt": 1,
    "completionTime": "2027-01-15T09:00:00Z",
}


async def test_a_file_is_submitted_with_its_objects(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    made = document()
    del made["metadata"]["namespace"]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump_all([made, secret]))
    dry = await called("submit", "job.yaml", "-n", "team", "--dry-run")
    assert [one["metadata"]["namespace"] for one in yaml.safe_load_all(dry.stdout)] == ["team", "team"]
    listed = json.loads((await called("submit", "job.yaml", "--dry-run", "-o", "json")).stdout)
    assert [one["kind"] for one in listed["items"]] == ["Secret", "PaddleJob"]
    assert api.asked == []
    done = await called("submit", "job.yaml")
    assert done.stdout.splitlines() == [
        "Secret s in namespace default: created",
        "job mnist in namespace default: created",
        "next: `pdj why mnist --cluster`, `pdj logs -f mnist --cluster`, `pdj delete mnist --cluster`",
    ]
    assert done.stderr == ""
    api.deployments = []
    api.objects.clear()
    warned = await called("submit", "job.yaml", "--context", "west")
    assert "warning: no operator is installed in this cluster" in warned.stderr
    assert "`pdj install --context west`" in warned.stderr
    refused = await called("submit", "job.yaml", "--save-logs", "x")
    assert "--save-logs works with --follow and a single job" in refused.stderr


async def test_a_submitted_job_is_waited_for(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(document()))
    api.answers["POST", "default/paddlejobs"] = lambda body: (201, api.put(JOB, {**body, "status": ENDED}))
    done = await called("submit", "job.yaml", "--wait")
    assert (done.returncode, "mnist: Completed: all workers succeeded" in done.stdout) == (0, True)
    failed = {**ENDED, "phase": "Failed", "message": "a worker failed"}
    api.answers["POST", "default/paddlejobs"] = lambda body: (201, api.put(JOB, {**body, "status": failed}))
    lost = await called("submit", "job.yaml", "--wait")
    assert (lost.returncode, lost.stderr) == (1, "pdj: mnist failed: a worker failed\n")
    name = api.add_pod(state="terminated")["metadata"]["name"]
    api.logs[name] = ["hello"]
    followed = await called("submit", "job.yaml", "--follow", "--save-logs", "logs")
    assert "[worker-0] hello\n" in followed.stdout
    assert (tmp_path / "logs/mnist-worker-0.log").read_text() == "hello\n"


async def test_a_program_is_submitted_with_its_code(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("print(1)\n")
    done = await called(
        "submit", "src/train.py", "--image", "i:1", "--workers", "2", "--gpus", "1", "--queue", "q", "--env", "A=1",
        "--volume", "data=/d", "--volume", "more", "--name", "mine", "--dry-run", "--", "--epochs", "3",
    )  # fmt: skip
    made = yaml.safe_load(done.stdout)
    container = made["spec"]["worker"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["python", "src/train.py", "--epochs", "3"]
    assert (container["image"], container["resources"]["limits"]) == ("i:1", {"nvidia.com/gpu": 1})
    assert [one["mountPath"] for one in container["volumeMounts"]] == ["/d", "/mnt/more"]
    assert (made["metadata"]["name"], made["metadata"]["labels"]) == ("mine", {"kueue.x-k8s.io/queue-name": "q"})
    outside = await called("submit", "src/train.py", "--image", "i:1", "--code", "src", "--dry-run")
    assert "--code src does not ship src/train.py; name the program relative to it" in outside.stderr
    bad = await called("submit", "src/train.py", "--image", "a=b")
    assert "is not the name of an image" in bad.stderr


async def test_the_code_of_a_job_is_written_back(api: ScriptedCluster, called: Pdj, tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("print(1)\n")
    archive = pack(str(tmp_path / "src"))
    made = api.add_job(ENDED)
    without = await called("code", "mnist", "-o", "out")
    assert "job mnist was submitted without --code; its code is in its image" in without.stderr
    made["metadata"]["annotations"] = {contract.ANNOTATION_CODE: f"{archive.digest}/1"}
    gone = await called("code", "mnist", "-o", "out")
    assert f"ConfigMap code-{archive.digest}-0 with the code of job mnist is gone" in gone.stderr
    data = {"part-000": base64.b64encode(archive.content).decode()}
    path = f"default/configmaps/code-{archive.digest}-0"
    api.put(path, {"metadata": {"namespace": "default"}, "binaryData": data})
    done = await called("code", "mnist", "-o", "out")
    assert done.stdout == "wrote 1 files to out\n"
    assert (tmp_path / "out/train.py").read_text() == "print(1)\n"
    again = await called("code", "mnist", "-o", "out")
    assert "--output out is not an empty directory; choose another" in again.stderr
    api.put(path, {"metadata": {"namespace": "default"}, "binaryData": {"part-000": ""}})
    assert "was changed in the cluster; it is not written" in (await called("code", "mnist", "-o", "new")).stderr
    assert hashlib.sha256(archive.content).hexdigest().startswith(archive.digest)
