"""deploy/examples holds the jobs of the product documents, so that whoever lacks the documents has the jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.seeds import ABSENT, SEEDS, seed_jobs

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "examples"

with_documents = pytest.mark.skipif(not SEEDS.is_dir(), reason=ABSENT)


def _documents() -> list[dict[str, Any]]:
    return [found for file in EXAMPLES.glob("*.yaml") for found in yaml.safe_load_all(file.read_text()) if found]


def _example(name: str, kind: str = "PaddleJob") -> dict[str, Any]:
    found = yaml.safe_load_all((EXAMPLES / name).read_text())
    return next(document for document in found if document and document["kind"] == kind)


@with_documents
def test_the_documents_hold_twelve_jobs():
    assert len(seed_jobs()) == 12


@with_documents
@pytest.mark.parametrize("where, text", seed_jobs() if SEEDS.is_dir() else [], ids=lambda value: str(value)[:8])
def test_every_job_of_the_documents_is_among_the_examples(where: str, text: str):
    spec = yaml.safe_load(text)["spec"]
    assert spec in [job["spec"] for job in _documents() if job["kind"] == "PaddleJob"], where


@with_documents
def test_a_job_is_taken_from_a_document_with_all_its_lines_and_no_other():
    first = dict(seed_jobs())["000:155"]
    assert first.startswith("apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob\nmetadata:\n")
    assert first.endswith("            image: registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1\n")


def test_the_examples_are_the_files_that_the_documents_list():
    assert {file.name for file in EXAMPLES.glob("*.yaml")} == {
        "data_demo.yaml",
        "pv-pvc.yaml",
        "resnet.yaml",
        "wide_and_deep.yaml",
        "wide_and_deep_gpu.yaml",
        "wide_and_deep_podip.yaml",
        "wide_and_deep_service.yaml",
        "wide_and_deep_volcano.yaml",
    }


def test_the_service_example_is_the_job_that_the_first_document_prints():
    job = _example("wide_and_deep_service.yaml")
    assert job["metadata"]["name"] == "wide-ande-deep-service"
    assert job["spec"]["intranet"] == "Service"
    assert job["spec"]["cleanPodPolicy"] == "Never"


def test_the_volcano_example_brings_the_pod_group_of_its_job():
    job, group = (_example("wide_and_deep_volcano.yaml", kind) for kind in ("PaddleJob", "PodGroup"))
    assert group["metadata"]["name"] == job["metadata"]["name"]
    assert group["spec"]["minMember"] == job["spec"]["ps"]["replicas"] + job["spec"]["worker"]["replicas"]


def test_the_claim_can_be_mounted_by_all_pods_of_the_job_that_uses_it():
    claim = _example("pv-pvc.yaml", "PersistentVolumeClaim")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for role in ("ps", "worker"):
        (volume,) = _example("data_demo.yaml")["spec"][role]["template"]["spec"]["volumes"]
        assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
