"""The files for kubectl: a kubeconfig, its token, and a volume with the claim that binds it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import Stubber

from paddlejob.cloud.aws.access import storage
from paddlejob.cloud.aws.access.kubeconfig import kubeconfig
from paddlejob.cloud.aws.access.tokens import exec_credential
from paddlejob.cloud.aws.session import Aws
from paddlejob.errors import BadInput, NotPossible

from .aws_state import client
from .kinds import Pdj

RUNNING = {"status": "ACTIVE", "endpoint": "https://1.eks.amazonaws.com", "certificateAuthority": {"data": "Q0E="}}


def described(aws: Aws, **cluster: Any) -> Stubber:
    eks = Stubber(aws.client("eks"))
    eks.add_response("describe_cluster", {"cluster": cluster}, {"name": "paddle-cluster"})
    return eks


def test_kubectl_finds_cluster_user_and_context_under_the_name_of_the_cluster() -> None:
    aws = Aws("us-west-2")
    with described(aws, **RUNNING):
        found = kubeconfig(aws, "paddle-cluster")
    (context,), (cluster,), (user,) = found["contexts"], found["clusters"], found["users"]
    assert found["current-context"] == context["name"] == "paddle-cluster"
    assert context["context"] == {"cluster": cluster["name"], "user": user["name"]}
    assert (found["apiVersion"], found["kind"]) == ("v1", "Config")
    plugin = user["user"]["exec"]
    assert plugin["interactiveMode"] == "Never", "the plugin asks nothing; kubectl requires the field"
    assert plugin["apiVersion"] == exec_credential("t", datetime.now(UTC))["apiVersion"], "both sides speak the same"
    assert "pip install 'paddlejob[aws]'" in plugin["installHint"]
    assert "--profile" not in plugin["args"]


def test_kubectl_uses_the_profile_that_the_kubeconfig_was_written_with(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws("us-west-2")
    with described(aws, **RUNNING):
        aws.profile = "work"
        (user,) = kubeconfig(aws, "paddle-cluster")["users"]
    assert user["user"]["exec"]["args"][-2:] == ["--profile", "work"]


def test_a_cluster_that_is_being_created_has_no_kubeconfig_yet() -> None:
    aws = Aws("us-west-2")
    with described(aws, status="CREATING"), pytest.raises(NotPossible) as rejected:
        kubeconfig(aws, "paddle-cluster")
    assert str(rejected.value) == ("cluster paddle-cluster is CREATING and has no endpoint yet; run `pdj aws up` again")


def test_kubectl_asks_for_a_new_token_a_minute_before_eks_rejects_the_old_one() -> None:
    noon_in_tokyo = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=9)))
    assert exec_credential("k8s-aws-v1.x", noon_in_tokyo) == {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "spec": {},
        "status": {"expirationTimestamp": "2026-01-01T03:14:00Z", "token": "k8s-aws-v1.x"},
    }


@pytest.mark.parametrize("nfs", [False, True])
def test_the_claim_binds_this_volume_and_no_other(nfs: bool) -> None:
    """Kubernetes binds them if class and access modes match and the volume is large enough."""
    volume, claim = storage.volume("fs-01234567", "us-west-2", nfs), storage.claim()
    assert (volume["apiVersion"], volume["kind"]) == ("v1", "PersistentVolume")
    assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
    wanted, offered = claim["spec"], volume["spec"]
    assert wanted["volumeName"] == volume["metadata"]["name"]
    assert wanted["accessModes"] == offered["accessModes"] == ["ReadWriteMany"]
    assert wanted["storageClassName"] == offered["storageClassName"] == "", "a default class would provision another"
    sizes = (wanted["resources"]["requests"]["storage"], offered["capacity"]["storage"])
    assert int(sizes[0].removesuffix("Gi")) <= int(sizes[1].removesuffix("Gi"))
    assert offered["persistentVolumeReclaimPolicy"] == "Retain", "deleting the claim must not delete the data"
    assert ("nfs" in offered, "csi" in offered) == (nfs, not nfs)


def test_the_file_system_has_the_domain_of_its_partition() -> None:
    assert storage.dns_name("fs-1", "cn-north-1") == "fs-1.efs.cn-north-1.amazonaws.com.cn"
    assert storage.dns_name("fs-1", "us-west-2") == "fs-1.efs.us-west-2.amazonaws.com"


@pytest.mark.usefixtures("made", "initialised")
def test_the_commands_to_create_the_volume_name_the_kubeconfig_where_there_is_one(pdj: Pdj, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--nfs and --csi exclude each other"):
        pdj("storage", "--nfs", "--csi")
    files = client("efs").create_file_system(CreationToken="mine")["FileSystemId"]
    data = "Outputs:\n  FileSystemId: {Value: " + files + "}\nResources:\n  Topic: {Type: 'AWS::SNS::Topic'}\n"
    client("cloudformation").create_stack(
        StackName="paddle-cluster-data",
        TemplateBody=data,
        Tags=[{"Key": "paddlejob/cluster", "Value": "paddle-cluster"}],
    )
    plain = [f"  kubectl create -f {tmp_path}/{name}" for name in ("pv.yaml", "pvc.yaml")]
    assert [line for line in pdj("storage").splitlines() if "kubectl" in line] == plain
    (tmp_path / "kubeconfig").write_text("")
    configured = [line.replace("kubectl", f"kubectl --kubeconfig={tmp_path}/kubeconfig") for line in plain]
    assert [line for line in pdj("storage").splitlines() if "kubectl" in line] == configured


@pytest.mark.usefixtures("made", "initialised")
def test_the_token_of_a_cluster_that_is_named_in_part_takes_the_rest_from_the_file(
    pdj: Pdj, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def token(aws: Aws, cluster: str) -> str:
        asked.append((cluster, aws.region))
        return "k8s-aws-v1.x"

    monkeypatch.setattr("paddlejob.cloud.aws.access.tokens.token", token)
    for options in (
        [],
        ["--cluster-name=other"],
        ["--region=eu-west-1"],
        ["--cluster-name=other", "--region=eu-west-1"],
    ):
        assert pdj("token", "--plain", *options) == "k8s-aws-v1.x\n"
    (tmp_path / "cluster.yaml").unlink()
    pdj("token", "--cluster-name=other", "--region=eu-west-1")
    assert asked == [
        ("paddle-cluster", "us-west-2"),
        ("other", "us-west-2"),
        ("paddle-cluster", "eu-west-1"),
        *[("other", "eu-west-1")] * 2,
    ]
