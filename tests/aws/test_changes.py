"""Changes of an existing cluster: what is updated, what is replaced, what is rejected; with moto as AWS."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.errors import BadInput

from .aws_state import change, client, inventory, node_group, stack_state
from .kinds import Made, Pdj

pytestmark = pytest.mark.usefixtures("made", "initialised")


def test_up_again_changes_nothing(pdj: Pdj) -> None:
    pdj("up")
    before = inventory()
    assert "No changes needed." in pdj("up")
    assert inventory() == before


def test_one_node_becomes_three_by_editing_the_file_or_by_scale(pdj: Pdj, tmp_path: Path) -> None:
    pdj("up")
    change(tmp_path, "workerCount: 1", "workerCount: 3")
    pdj("up")
    assert node_group()["scalingConfig"] == {"minSize": 0, "desiredSize": 3, "maxSize": 10}
    assert "Asked for 2 nodes of paddle-cluster." in pdj("scale", "2")
    assert node_group()["scalingConfig"]["desiredSize"] == 2
    assert "workerCount: 2\n" in (tmp_path / "cluster.yaml").read_text()


def test_another_instance_type_exchanges_the_nodes_and_says_so_first(pdj: Pdj, tmp_path: Path) -> None:
    """CloudFormation exchanges nothing with rollback disabled, so that this update must not ask for that."""
    pdj("up")
    change(tmp_path, "workerInstanceType: m5.xlarge", "workerInstanceType: g4dn.xlarge")
    change(tmp_path, "workerSpot: false", "workerSpot: true")
    with pytest.raises(BadInput, match="the change replaces or removes resources; confirm it with --yes"):
        pdj("up")
    assert node_group()["instanceTypes"] == ["m5.xlarge"]
    output = pdj("up", "--yes")
    assert (
        "Nodes                  AmiType, CapacityType, InstanceTypes (creates new nodes, then deletes the old" in output
    )
    assert (node_group()["instanceTypes"], node_group()["capacityType"]) == (["g4dn.xlarge"], "SPOT")
    assert node_group()["amiType"] == "AL2023_x86_64_NVIDIA"
    assert "install NVIDIA's device plugin" in output


@pytest.mark.parametrize("status", ["CREATE_FAILED", "UPDATE_FAILED"])
def test_up_resumes_a_creation_that_failed_even_if_it_is_asked_to_roll_back(
    pdj: Pdj, tmp_path: Path, status: str
) -> None:
    """In these states CloudFormation takes an update only with rollback disabled."""
    pdj("up")
    stack_state(status)
    change(tmp_path, "workerCount: 1", "workerCount: 2")
    assert "Cluster paddle-cluster is up.\n" in pdj("up", "--rollback")
    assert node_group()["scalingConfig"]["desiredSize"] == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [("workerDiskSize: 100", "workerDiskSize: 200"), ("# keyName: NAME", "keyName: mine")],
)
def test_a_setting_that_makes_eks_replace_the_nodes_is_announced(pdj: Pdj, tmp_path: Path, old: str, new: str) -> None:
    """CloudFormation keeps the node group, and EKS replaces its nodes for the new launch template."""
    client("ec2").create_key_pair(KeyName="mine")
    pdj("up")
    change(tmp_path, old, new)
    with pytest.raises(BadInput, match="confirm it with --yes"):
        pdj("up")
    assert "(replaces every node in turn and evicts its pods)" in pdj("up", "--yes")


def test_at_a_terminal_every_change_is_shown_and_asked_about(
    pdj: Pdj, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddlejob.cli.aws.confirm.is_terminal", lambda: True)
    pdj("up")
    change(tmp_path, "workerCount: 1", "workerCount: 3")
    for answer in ("n\n", "\n", ""):
        with pytest.raises(BadInput, match="nothing was changed"):
            pdj("up", answers=answer)
    assert node_group()["scalingConfig"]["desiredSize"] == 1
    assert "Changes of paddle-cluster:\n  Modify   Nodes                  ScalingConfig\n" in pdj("up", answers="y\n")
    assert node_group()["scalingConfig"]["desiredSize"] == 3


def test_scaling_above_the_most_says_where_to_raise_it(pdj: Pdj) -> None:
    pdj("up")
    with pytest.raises(BadInput, match="outside 0 to 10; raise maxWorkerCount"):
        pdj("scale", "11")
    assert node_group()["scalingConfig"]["desiredSize"] == 1


def test_a_change_that_would_replace_the_cluster_is_rejected(pdj: Pdj, tmp_path: Path) -> None:
    pdj("up")
    change(tmp_path, "vpcCIDR: 10.0.0.0/16", "vpcCIDR: 10.1.0.0/16")
    change(tmp_path, "[us-west-2a]", "[us-west-2b]")
    with pytest.raises(BadInput) as rejected:
        pdj("up")
    assert "availabilityZones cannot change from us-west-2a to us-west-2b" in str(rejected.value)
    assert "vpcCIDR cannot change from 10.0.0.0/16 to 10.1.0.0/16" in str(rejected.value)


def test_whoever_runs_up_later_does_not_take_the_cluster_from_its_administrator(
    pdj: Pdj, made: Made, tmp_path: Path
) -> None:
    first = "arn:aws:iam::123456789012:role/first"
    with (tmp_path / "cluster.yaml").open("a") as file:
        file.write(f"administratorArn: {first}\n")
    pdj("up")
    change(tmp_path, f"administratorArn: {first}\n", "")
    change(tmp_path, "workerCount: 1", "workerCount: 3")
    pdj("up")
    assert [entry["PrincipalArn"] for name, entry in made.items() if "AccessEntry" in name] == [first]
    (stack,) = client("cloudformation").describe_stacks(StackName="paddle-cluster")["Stacks"]
    assert {"ParameterKey": "AdministratorArn", "ParameterValue": first} in stack["Parameters"]
