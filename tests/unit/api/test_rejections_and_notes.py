"""Documents that are rejected with one message, and the notes of a conversion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlejob.api.convert import convert
from paddlejob.api.documents import documents
from paddlejob.api.validate import faults
from paddlejob.errors import BadInput
from tests.support.builders import document

EXAMPLE = Path(__file__).parents[3] / "deploy/examples/batch-job/paddle-cluster-job.yaml"


@pytest.mark.parametrize("metadata", [[], "mnist", 7])
def test_metadata_that_is_no_mapping_is_a_fault(metadata: Any):
    assert any(fault.startswith("metadata: ") for fault in faults(document() | {"metadata": metadata}))


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_labels_and_annotations_are_mappings(field: str):
    made = document()
    made["metadata"][field] = ["a"]
    assert any(fault.startswith(f"metadata.{field}: ") for fault in faults(made))


def test_a_key_that_is_a_list_is_invalid_yaml_and_not_a_crash():
    with pytest.raises(BadInput, match="a key must be a single word"):
        documents("? [a, b]\n: c\n", "job.yaml")


@pytest.mark.parametrize(
    ("kind", "message"),
    [("PaddleJob", "no conversion needed"), ("PaddleCluster", "cannot be converted")],
)
def test_only_a_paddlejob_needs_no_conversion(kind: str, message: str):
    with pytest.raises(BadInput, match=message):
        convert({"apiVersion": "batch.paddlepaddle.org/v1", "kind": kind})


@pytest.mark.parametrize(
    "field",
    ["podFailurePolicy", "backoffLimitPerIndex", "maxFailedIndexes", "successPolicy", "podReplacementPolicy"],
)
def test_a_policy_of_a_batch_job_is_left_out_with_what_happens_instead(field: str):
    job = next(one for one in yaml.safe_load_all(EXAMPLE.read_text()) if one["kind"] == "Job")
    job["spec"][field] = 1
    made = convert(job)
    assert field not in made.job["spec"]
    (note,) = [note for note in made.notes if f"spec.{field}" in note]
    assert "attempt" in note or "backoffLimit" in note or "complete" in note


def kubeflow(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "paddle", "image": "x"}]
    role = {"replicas": 2, "restartPolicy": "Never", "template": {"spec": {"containers": containers}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "mnist"},
        "spec": {"paddleReplicaSpecs": {"Worker": role} | spec.pop("roles", {})} | spec,
    }


def test_what_kubeflows_elastic_policy_has_in_common_with_ours_is_not_called_left_out():
    policy = {"minReplicas": 1, "maxReplicas": 4, "maxRestarts": 7, "rdzvBackend": "etcd"}
    notes = [note for note in convert(kubeflow(elasticPolicy=policy)).notes if "is left out" in note]
    assert [note.partition(":")[0] for note in notes] == ["spec.elasticPolicy.rdzvBackend"]


def test_a_kubeflow_role_that_is_not_a_mapping_is_rejected_without_a_crash():
    with pytest.raises(BadInput, match="Master"):
        convert(kubeflow(roles={"Master": 3}))
