"""Options and messages of single verbs that are easily lost: new files, logs, validation, conversions, removal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob import contract
from paddlejob.cli import program as programs
from paddlejob.cli.install.rollout import wait_until_available
from paddlejob.cli.verbs.init import STARTERS
from paddlejob.errors import BadInput, NotPossible
from paddlejob.kube.client import Client
from paddlejob.operator.manifests import LABELS, NAME, NAMESPACE
from tests.support.builders import document
from tests.support.called_pdj import pdj
from tests.support.cluster_verbs import Pdj, established
from tests.support.scripted_cluster import ScriptedCluster, failure, operator

RUNNING = {"phase": "Running", "message": "all pods are running", "attempt": 1}


@pytest.mark.parametrize(
    ("mode", "roles"),
    [
        ("ps", {"ps": 2, "worker": 2}),
        ("collective", {"worker": 2}),
        ("single", {"worker": 1}),
        ("heter", {"ps": 1, "worker": 1, "heter": 1}),
    ],
)
def test_a_new_file_on_standard_output_has_the_roles_of_its_mode_with_a_comment_each(mode: str, roles: dict[str, int]):
    done = pdj("init", mode)
    spec = yaml.safe_load(done.stdout)["spec"]
    assert {role: spec[role]["replicas"] for role in ("ps", "worker", "heter") if role in spec} == roles
    assert ("withGloo" in spec) == (len(roles) > 1)
    for _, _, about in STARTERS[mode].roles:
        assert f"  # {about}\n" in done.stdout
    assert done.stderr == "" and done.stdout.endswith("nvidia.com/gpu: 1\n")


def test_a_new_file_needs_a_directory_and_llm_no_program(tmp_path: Path):
    (tmp_path / "train.py").touch()
    nowhere = pdj("init", "-o", "none/job.yaml", folder=tmp_path)
    assert (nowhere.returncode, "none/job.yaml: no such directory: none; create it first" in nowhere.stderr) == (
        2,
        True,
    )
    assert "llm is trained by paddleformers-cli" in pdj("init", "llm", "--program", "train.py", folder=tmp_path).stderr
    assert "--program absent.py: no such file" in pdj("init", "--program", "absent.py", folder=tmp_path).stderr
    script = tmp_path / "run.sh"
    script.touch()
    made = yaml.safe_load(pdj("init", "collective", "--program", "run.sh", folder=tmp_path).stdout)
    assert made["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] == ["bash", "run.sh"]


def test_all_workers_have_one_image():
    assert programs.image_name(["a=dir", "own:1"]) == "own:1"
    assert programs.image_name(["a=dir"]) == ""
    with pytest.raises(BadInput, match="--image b: all workers have one image; name only a, or write NAME=DIR"):
        programs.image_name(["a", "b"])


def test_a_file_without_a_job_is_invalid_for_programs_too(tmp_path: Path):
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}))
    done = pdj("validate", "s.yaml", "-o", "json", folder=tmp_path)
    (report,) = json.loads(done.stdout)
    assert (done.returncode, report["valid"], len(report["errors"])) == (2, False, 1)
    assert "PaddleJob" in report["errors"][0]["message"]


def test_a_converted_job_that_would_be_invalid_is_not_written(tmp_path: Path):
    pod = {"containers": [{"name": "a", "image": "i"}]}
    job = {
        "apiVersion": "kubeflow.org/v1", "kind": "PaddleJob", "metadata": {"name": "Not_Valid"},
        "spec": {"paddleReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": pod}}}},
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    done = pdj("convert", "job.yaml", "-o", "new.yaml", folder=tmp_path)
    assert done.returncode == 2 and "metadata.name" in done.stderr, done
    assert not (tmp_path / "new.yaml").exists()


async def test_a_negative_number_of_lines_is_rejected_and_none_are_allowed(api: ScriptedCluster, called: Pdj):
    api.add_job(RUNNING)
    api.logs[api.add_pod()["metadata"]["name"]] = ["a", "b"]
    assert (await called("logs", "mnist", "--cluster", "--tail", "-2")).stderr == "pdj: --tail -2: use 0 or more\n"
    every = await called("logs", "mnist", "--cluster", "--index", "0", "--tail", "-1")
    assert every.stdout == "a\nb\n"
    assert (await called("logs", "mnist", "--cluster", "--index", "0", "--tail", "0")).stdout == ""


async def test_a_pattern_that_is_none_is_named_before_the_log(api: ScriptedCluster, called: Pdj):
    api.add_job(RUNNING, progress={"pattern": "("})
    api.logs[api.add_pod()["metadata"]["name"]] = ["step 1"]
    done = await called("metrics", "mnist", "--cluster")
    assert (done.returncode, done.stderr.startswith("pdj: spec.progress.pattern of job mnist: ")) == (2, True)


async def test_jobs_of_a_cluster_are_completed(api: ScriptedCluster, called: Pdj):
    api.add_job(RUNNING)
    api.add_job(RUNNING, "other")
    words = {"_PDJ_COMPLETE": "complete_bash", "COMP_WORDS": "pdj get --cluster m", "COMP_CWORD": "3"}
    assert (await called(**words)).stdout.split() == ["mnist"]


async def test_a_namespace_of_something_else_is_used_as_it_is(api: ScriptedCluster, called: Pdj):
    established(api)
    api.objects["namespaces/team"] = api.objects["team"] = {"metadata": {"name": "team", "labels": {"own": "x"}}}
    done = await called("install", "--no-wait", "-n", "team")
    assert done.returncode == 0, done.stderr
    assert "Namespace team: applied" not in done.stdout
    assert f"Deployment {NAME} in namespace team: applied" in done.stdout


async def test_a_pod_that_cannot_start_is_why_an_installation_waits(api: ScriptedCluster, client: Client):
    counts = {"observedGeneration": 1, "updatedReplicas": 1, "replicas": 1}
    deployment: dict[str, Any] = {
        "metadata": {"name": NAME, "namespace": NAMESPACE, "generation": 1},
        "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}},
        "status": counts,
    }
    api.answers["GET", f"{NAMESPACE}/deployments/{NAME}"] = 200, deployment
    waiting = {"state": {"waiting": {"reason": "ErrImageNeverPull"}}}
    pods = [
        {"metadata": {"name": "a"}, "spec": {}},
        {
            "metadata": {"name": "b"},
            "spec": {"containers": [{"image": "i:1"}]},
            "status": {"containerStatuses": [waiting]},
        },
    ]
    api.answers["GET", f"{NAMESPACE}/pods"] = 200, {"metadata": {}, "items": pods}
    with pytest.raises(NotPossible, match="pod b: ErrImageNeverPull: the image i:1 is not on the node"):
        await wait_until_available(client, deployment, -1, lambda _: None)
    selector = ",".join(f"{key}={value}" for key, value in LABELS.items())
    assert (f"{NAMESPACE}/pods", selector) in [(path, query.get("labelSelector")) for path, query in api.queries]


async def test_an_operator_without_jobs_is_removed_without_a_word_about_them(api: ScriptedCluster, called: Pdj):
    established(api)
    del api.answers["GET", f"customresourcedefinitions/{contract.PLURAL}.{contract.GROUP}"]
    api.deployments = [operator()]
    none = await called("uninstall")
    assert "PaddleJobs" not in none.stderr
    api.answers["GET", "paddlejobs"] = failure(404, "NotFound")
    gone = await called("uninstall")
    assert (gone.returncode, "confirm with --yes" in gone.stderr, "PaddleJobs" in gone.stderr) == (2, True, False)
    api.deployments = [operator(), operator("team", namespace="team")]
    two = await called("uninstall")
    assert "  keeps the PaddleJob CRD and all jobs because another operator is installed" in two.stderr


async def test_an_operator_is_removed_only_after_a_yes(api: ScriptedCluster, called: Pdj):
    established(api)
    api.deployments = [operator()]
    no = await called("uninstall", "--keep-jobs", typed="n\n")
    assert (no.returncode, api.written("DELETE")) == (1, [])
    assert "Remove the operator from http://127.0.0.1:" in no.stdout + no.stderr
    del api.answers["GET", f"{NAMESPACE}/deployments/{NAME}"]
    yes = await called("uninstall", "--keep-jobs", typed="y\n")
    assert (yes.returncode, bool(api.written("DELETE"))) == (0, True), yes.stderr


def test_a_job_of_a_file_is_shown_as_it_would_be_sent(tmp_path: Path):
    (tmp_path / "job.yaml").write_text(yaml.safe_dump_all([document("a"), document("b")]))
    both = json.loads(pdj("run", "job.yaml", "--dry-run", "-o", "json", "--workers", "5", folder=tmp_path).stdout)
    assert both["kind"] == "List"
    assert [one["spec"]["worker"]["replicas"] for one in both["items"]] == [5, 5]
