"""`validate`: problems that AWS would report only after minutes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber

from paddlejob.api.checks.host_ports import node_problems
from paddlejob.cloud.aws.capacity import quota_problems
from paddlejob.cloud.aws.checks import online_problems
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import BadInput

from .answers import answer
from .aws_state import change, client
from .kinds import Configured, Pdj

pytestmark = pytest.mark.usefixtures("made", "initialised")

# The document's paddle-cluster-job.yaml, as far as ports are concerned.
JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: paddle-cluster-job
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      containers:
      - name: trainer
        image: paddlepaddle/paddle-tutorial:k8s_train
        ports:
        - {name: jobport0, hostPort: 7164, containerPort: 7164}
        - {name: jobport1, hostPort: 7165, containerPort: 7165}
      restartPolicy: Never
"""


def problems(pdj: Pdj, *arguments: str) -> str:
    with pytest.raises(BadInput) as rejected:
        pdj("validate", *arguments)
    return str(rejected.value)


def test_a_good_file_is_fine_and_its_price_is_listed(pdj: Pdj) -> None:
    output = pdj("validate")
    assert "cluster.yaml is valid" in output
    assert "EKS control plane" in output
    assert "AWS' price list" in output
    offline = pdj("validate", "--offline")
    assert "checked offline" in offline
    assert "Cost unknown: AWS' price list cannot be read (asked for without a connection)" in offline


def test_the_price_can_be_read_by_a_program(pdj: Pdj, facts: Callable[..., Any]) -> None:
    found = facts("validate")
    assert (found["clusterName"], found["valid"]) == ("paddle-cluster", True)
    prices = [item["hourly"] for item in found["idleCost"]["items"]]
    assert found["idleCost"]["hourly"] == pytest.approx(sum(prices), abs=0.001)  # each is rounded


@pytest.mark.parametrize("offline", [[], ["--offline"]])
def test_an_unknown_instance_type_and_a_near_one(pdj: Pdj, tmp_path: Path, offline: list[str]) -> None:
    change(tmp_path, "m5.xlarge", "m5.xlrage")
    assert "workerInstanceType: 'm5.xlrage' is not an instance type" in problems(pdj, *offline)
    assert "did you mean m5.xlarge?" in problems(pdj, *offline)


def test_a_region_without_eks(pdj: Pdj, tmp_path: Path) -> None:
    change(tmp_path, "region: us-west-2", "region: us-west-9")
    change(tmp_path, "[us-west-2a]", "[us-west-9a]")
    assert "region: EKS is not available in 'us-west-9'; did you mean us-west-" in problems(pdj)


def test_a_zone_that_the_account_does_not_have(pdj: Pdj, tmp_path: Path) -> None:
    change(tmp_path, "[us-west-2a]", "[us-west-2z]")
    assert "availabilityZones: this account has no zone us-west-2z in us-west-2; use one of us-west-2a," in problems(
        pdj
    )


def test_a_type_that_its_zone_does_not_offer(pdj: Pdj, tmp_path: Path) -> None:
    offers = client("ec2").get_paginator("describe_instance_type_offerings")
    zones_of_type: dict[str, set[str]] = {}
    for page in offers.paginate(LocationType="availability-zone"):
        for offer in page["InstanceTypeOfferings"]:
            zones_of_type.setdefault(offer["InstanceType"], set()).add(offer["Location"])
    scarce = next(name for name, zones in sorted(zones_of_type.items()) if zones and "us-west-2a" not in zones)
    change(tmp_path, "m5.xlarge", scarce)
    assert f"workerInstanceType: {scarce} is not offered in us-west-2a; use one of us-west-2" in problems(pdj)


def test_a_name_that_an_eks_cluster_has_already(pdj: Pdj) -> None:
    eks = client("eks")
    role, network = "arn:aws:iam::123456789012:role/r", {"subnetIds": ["subnet-1", "subnet-2"]}
    eks.create_cluster(name="paddle-cluster", roleArn=role, resourcesVpcConfig=network)
    assert (
        "us-west-2 already has an EKS cluster paddle-cluster that paddlejob did not create; choose another"
        in problems(pdj)
    )
    eks.delete_cluster(name="paddle-cluster")
    pdj("up")
    assert "is valid" in pdj("validate"), "its own cluster is not in its way"


def test_a_kubernetes_version_that_eks_no_longer_supports_at_the_normal_price(
    configured: Configured,
) -> None:
    aws = Aws("us-west-2")
    offers = {"clusterVersions": [{"clusterVersion": version} for version in ("1.36", "1.35", "1.34")]}
    with Stubber(aws.client("eks")) as eks:
        for _ in range(2):
            absent = "ResourceNotFoundException"
            eks.add_client_error("describe_cluster", absent)
            eks.add_response("describe_cluster_versions", offers, {"versionStatus": "STANDARD_SUPPORT"})
        wanted = [found for found in online_problems(aws, configured(kubernetesVersion="1.29")) if "Version" in found]
        assert wanted == ["kubernetesVersion: 1.29 is not in EKS standard support; use one of 1.34, 1.35, 1.36"]
        assert online_problems(aws, configured(kubernetesVersion="1.35")) == []


def test_a_key_pair_a_kms_key_and_a_file_system_that_are_not_there(pdj: Pdj, tmp_path: Path) -> None:
    arn = "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-3333-4444-555555555555"
    change(tmp_path, "# keyName: NAME", "keyName: mine")
    change(tmp_path, "# kmsKeyArn: arn:aws:kms:...", f"kmsKeyArn: {arn}")
    change(tmp_path, "# fileSystemId: fs-...", "fileSystemId: fs-2cbf7385")
    output = problems(pdj)
    assert "keyName: no key pair mine in us-west-2" in output
    assert f"kmsKeyArn: no such key: {arn}" in output
    assert "fileSystemId: no file system fs-2cbf7385" in output


def test_a_key_that_is_disabled(pdj: Pdj, tmp_path: Path) -> None:
    kms = client("kms")
    key = kms.create_key()["KeyMetadata"]
    change(tmp_path, "# kmsKeyArn: arn:aws:kms:...", f"kmsKeyArn: {key['Arn']}")
    assert "is valid" in pdj("validate")
    kms.disable_key(KeyId=key["KeyId"])
    assert "kmsKeyArn: the key is Disabled" in problems(pdj)


def test_a_key_that_signs_instead_of_encrypting(pdj: Pdj, tmp_path: Path) -> None:
    key = client("kms").create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]
    change(tmp_path, "# kmsKeyArn: arn:aws:kms:...", f"kmsKeyArn: {key['Arn']}")
    assert "kmsKeyArn: the key is Enabled and RSA_2048; EKS needs an enabled symmetric key" in problems(pdj)


def test_a_type_that_the_whole_region_does_not_offer(pdj: Pdj, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "DescribeInstanceTypeOfferings", lambda _: {"InstanceTypeOfferings": []})
    expected = "workerInstanceType: m5.xlarge is not offered in us-west-2; choose another type or region"
    assert problems(pdj).endswith(f"cluster.yaml: {expected}")


def test_with_auto_mode_no_instance_type_is_asked_for(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "DescribeInstanceTypeOfferings", lambda _: {"InstanceTypeOfferings": []})
    assert online_problems(Aws("us-west-2"), configured(autoMode=True)) == []
    assert len(online_problems(Aws("us-west-2"), configured())) == 1


def test_a_region_and_a_type_that_resemble_none_are_both_reported_offline(pdj: Pdj, tmp_path: Path) -> None:
    change(tmp_path, "region: us-west-2", "region: zz-nowhere-9")
    change(tmp_path, "[us-west-2a]", "[zz-nowhere-9a]")
    change(tmp_path, "m5.xlarge", "qqqq99.zzzz")
    region, kind = problems(pdj, "--offline").splitlines()
    assert region.endswith("region: EKS is not available in 'zz-nowhere-9'; choose another")
    assert kind.endswith("known to this version of boto3; choose another")


def test_fewer_nodes_than_trainers_where_host_ports_are_used(pdj: Pdj, tmp_path: Path) -> None:
    job = tmp_path / "paddle-cluster-job.yaml"
    job.write_text(JOB)
    assert problems(pdj, "--job", str(job)) == (
        "job paddle-cluster-job: 3 pods use host port 7164/TCP, which needs a node for each, and workerCount is 1; set "
        "workerCount to at least 3"
    )
    change(tmp_path, "workerCount: 1", "workerCount: 3")
    assert "is valid" in pdj("validate", "--job", str(job))


def test_a_job_file_that_cannot_be_read(pdj: Pdj, tmp_path: Path) -> None:
    assert "nowhere.yaml: no such file" in problems(pdj, "--job", str(tmp_path / "nowhere.yaml"))


def test_up_rejects_the_same_faults_before_it_creates_anything(pdj: Pdj, tmp_path: Path) -> None:
    change(tmp_path, "[us-west-2a]", "[us-west-2z]")
    with pytest.raises(BadInput, match="no zone us-west-2z in us-west-2"):
        pdj("up")
    assert client("cloudformation").describe_stacks()["Stacks"] == []


def template(**port: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "paddle", "ports": [port]}]}}


def test_roles_of_a_paddlejob_that_share_a_host_port_are_counted_together() -> None:
    job = {
        "kind": "PaddleJob",
        "metadata": {"name": "wide"},
        "spec": {
            "ps": {"replicas": 2, "template": template(hostPort=7000, containerPort=7000)},
            "worker": {"replicas": 2, "template": template(hostPort=7000, containerPort=7000)},
        },
    }
    assert node_problems([job], 4) == []
    assert "4 pods use host port 7000/TCP" in node_problems([job], 3)[0]


def test_ports_of_a_pod_on_the_hosts_network_count_and_plain_ports_do_not() -> None:
    pod = template(containerPort=8080)
    job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": 2, "template": pod}}
    assert node_problems([job, None, "text", {"kind": "Service"}], 1) == []
    pod["spec"]["hostNetwork"] = True
    assert "2 pods use host port 8080/TCP" in node_problems([job], 1)[0]


def test_without_credentials_the_file_can_be_made_rendered_and_checked(
    pdj: Pdj, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    assert "Wrote " in pdj("render")
    assert "is valid" in pdj("validate", "--offline")
    assert "cloudformation:*Stack" in pdj("policy", "--account-id", "123456789012")


QUOTA = {"QuotaName": "Running On-Demand Standard instances", "Value": 16.0}


@pytest.mark.parametrize(("workers", "count"), [(4, 0), (5, 1)])
@pytest.mark.usefixtures("made")
def test_nodes_beyond_the_quota_are_reported_before_anything_is_created(
    configured: Configured, monkeypatch: pytest.MonkeyPatch, workers: int, count: int
) -> None:
    """moto has no quotas of EC2."""
    plainly = Aws.call

    def limited(self: Aws, service: str, operation: str, **request: Any) -> dict[str, Any]:
        if service != "service-quotas":
            return plainly(self, service, operation, **request)
        assert request == {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"}
        return {"Quota": QUOTA}

    monkeypatch.setattr(Aws, "call", limited)
    found = quota_problems(Aws("us-west-2"), configured(workerCount=workers))
    assert len(found) == count
    expected = "workerCount: 5 x m5.xlarge need 20 vCPUs, and the quota 'Running On-Demand Standard instances' is 16;"
    assert all(problem.startswith(expected) for problem in found)


@pytest.mark.usefixtures("made")
def test_a_quota_that_cannot_be_read_is_no_problem(configured: Configured) -> None:
    for name in ("m5.xlarge", "g4dn.xlarge", "p3.2xlarge", "u-6tb1.112xlarge"):
        assert quota_problems(Aws("us-west-2"), configured(workerInstanceType=name)) == []
