"""`pdj convert` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.support.called_pdj import pdj

EXAMPLES = Path(__file__).resolve().parents[3] / "deploy" / "examples" / "batch-job"


def test_the_job_goes_to_standard_output_and_the_notes_to_both():
    ran = pdj("convert", str(EXAMPLES / "paddle-cluster-job.yaml"))
    assert ran.returncode == 0, ran.stderr
    assert pdj("convert", str(EXAMPLES / "paddle-cluster-job.yaml"), "-o", "-").stdout == ran.stdout
    assert yaml.safe_load(ran.stdout)["kind"] == "PaddleJob"
    for line in ran.stderr.splitlines():
        assert line.startswith("note: ")
        assert f"# {line[6:]}\n" in ran.stdout


def test_other_objects_of_the_file_stay_and_the_result_is_a_job_that_validates(tmp_path: Path):
    result = tmp_path / "job.yaml"
    ran = pdj("convert", str(EXAMPLES / "paddle-indexed-job.yaml"), "-o", str(result))
    assert ran.returncode == 0, ran.stderr
    assert [one["kind"] for one in yaml.safe_load_all(result.read_text())] == ["Service", "PaddleJob"]
    assert "valid (paddle-cluster-job)" in pdj("validate", str(result)).stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [{name: a}]}}}", "cannot be converted"),
        (
            "apiVersion: v1\nkind: ConfigMap",
            "v1 ConfigMap cannot be converted; `pdj convert` accepts a batch/v1 Job whose",
        ),
        ("hello: world", "None None cannot be converted"),
        ("apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob", "PaddleJob: no conversion needed"),
        ("apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleCluster", "cannot be converted"),
        ("? [a, b]\n: c", "a key must be a single word"),
        ("apiVersion: kubeflow.org/v1\nkind: PaddleJob", "spec.paddleReplicaSpecs is missing; add it"),
        ("just words", "a Kubernetes object is a mapping"),
        ("a: [", "invalid YAML"),
        ("", "is empty"),
    ],
)
def test_a_file_with_nothing_to_convert_is_rejected_and_the_error_says_what_can_be_converted(
    text: str, expected: str, tmp_path: Path
):
    result = tmp_path / "job.yaml"
    ran = pdj("convert", "-", "-o", str(result), input=text)
    assert ran.returncode == 2
    assert ran.stderr.startswith("pdj: standard input") or ran.stderr.startswith("pdj: -: ")
    assert expected in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not result.exists()


def test_a_result_that_would_not_validate_is_not_written(tmp_path: Path):
    job = yaml.safe_load((EXAMPLES / "paddle-cluster-job.yaml").read_text())
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"gpu": 1}}
    (tmp_path / "gpu.yaml").write_text(yaml.safe_dump(job))
    ran = pdj("convert", str(tmp_path / "gpu.yaml"))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "resources.limits.gpu is not a resource of Kubernetes" in ran.stderr


def test_a_file_of_several_jobs_says_which_note_is_of_which(tmp_path: Path):
    job = yaml.safe_load((EXAMPLES / "paddle-cluster-job.yaml").read_text())
    second = {**job, "metadata": {"name": "second"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([job, service, second]))
    ran = pdj("convert", str(tmp_path / "all.yaml"))
    assert ran.returncode == 0, ran.stderr
    made = list(yaml.safe_load_all(ran.stdout))
    assert [(one["kind"], one["metadata"]["name"]) for one in made] == [
        ("PaddleJob", "paddle-cluster-job"), ("Service", "s"), ("PaddleJob", "second"),
    ]  # fmt: skip
    assert made[1] == service
    assert {line.split(": ")[1] for line in ran.stderr.splitlines()} == {"paddle-cluster-job", "second"}


def test_json_is_the_same_without_comments(tmp_path: Path):
    file = str(EXAMPLES / "paddle-cluster-job.yaml")
    printed = pdj("convert", file, "-o", "json")
    assert json.loads(printed.stdout) == yaml.safe_load(pdj("convert", file, "-o", "yaml").stdout)
    assert "note: spec.backoffLimit" in printed.stderr
    both = pdj("convert", str(EXAMPLES / "paddle-indexed-job.yaml"), "-o", str(tmp_path / "job.json"))
    assert both.returncode == 0 and both.stdout == ""
    listed = json.loads((tmp_path / "job.json").read_text())
    assert (listed["kind"], [one["kind"] for one in listed["items"]]) == ("List", ["Service", "PaddleJob"])
    assert "valid (paddle-cluster-job)" in pdj("validate", str(tmp_path / "job.json")).stdout


def test_a_job_that_would_break_a_rule_is_rejected_with_the_rule_and_nothing_is_written(tmp_path: Path):
    job = yaml.safe_load((EXAMPLES / "paddle-cluster-job.yaml").read_text())
    job["metadata"]["name"] = "n" * 63
    job["spec"]["template"]["spec"]["unknown"] = 1
    ran = pdj("convert", "-", "-o", str(tmp_path / "job.yaml"), input=yaml.safe_dump(job))
    assert ran.returncode == 2
    assert "spec.worker.template.spec.unknown: unknown field" in ran.stderr
    assert not (tmp_path / "job.yaml").exists()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path):
    ran = pdj("convert", str(EXAMPLES / "paddle-cluster-job.yaml"), "-o", str(tmp_path / "nowhere" / "job.yaml"))
    assert ran.returncode == 1
    assert ran.stderr == f"pdj: {tmp_path}/nowhere/job.yaml cannot be written: No such file or directory\n"


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path):
    mine = tmp_path / "job.yaml"
    mine.write_text((EXAMPLES / "paddle-cluster-job.yaml").read_text())
    ran = pdj("convert", str(mine), "-o", str(mine))
    assert (ran.returncode, "already exists" in ran.stderr) == (2, True)
    assert yaml.safe_load(mine.read_text())["kind"] == "Job"
    assert pdj("convert", str(mine), "-o", str(mine), "--force").returncode == 0
    assert yaml.safe_load(mine.read_text())["kind"] == "PaddleJob"
