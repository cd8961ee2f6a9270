"""`pdj aws upgrade`: control plane, add-ons and nodes in one change that is shown first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.upgrade import default_version, latest_release
from paddlejob.cloud.aws.templates.render import ADDONS
from paddlejob.errors import BadInput, NotPossible

from .answers import answer
from .aws_state import change, client, cluster
from .kinds import Pdj

pytestmark = pytest.mark.usefixtures("made", "initialised", "versions")


def parameters() -> dict[str, str]:
    (stack,) = client("cloudformation").describe_stacks(StackName="paddle-cluster")["Stacks"]
    return {item["ParameterKey"]: item["ParameterValue"] for item in stack["Parameters"]}


def following() -> tuple[str, str]:
    """The version of the cluster and the next."""
    now = str(cluster()["version"])
    return now, f"1.{int(now.split('.')[1]) + 1}"


def test_the_next_version_takes_all_parts_along_and_is_written_down(pdj: Pdj, tmp_path: Path, made: Any) -> None:
    pdj("up")
    _, after = following()
    with pytest.raises(BadInput, match="confirm it with --yes"):
        pdj("upgrade", "--to", after)
    output = pdj("upgrade", "--to", after, "--yes")
    assert "(replaces every node in turn and evicts its pods)" in output
    assert f"runs Kubernetes {after}." in output
    assert parameters()["KubernetesVersion"] == after
    assert parameters()["AddonVersions"] == ",".join([f"v-{after}"] * len(ADDONS))
    assert parameters()["NodeRelease"] == f"{after}-20261101"
    assert f'kubernetesVersion: "{after}"' in (tmp_path / "cluster.yaml").read_text()
    assert "No changes needed." in pdj("upgrade", "--to", after)


def test_without_a_version_the_add_ons_and_the_image_are_brought_up_to_date(pdj: Pdj, tmp_path: Path) -> None:
    pdj("up")
    now, _ = following()
    before = (tmp_path / "cluster.yaml").read_text()
    pdj("upgrade", "--yes")
    assert parameters()["NodeRelease"] == f"{now}-20261101"
    assert parameters()["KubernetesVersion"] == ""
    assert (tmp_path / "cluster.yaml").read_text() == before


def test_what_an_upgrade_chose_is_not_taken_back_by_the_next_up(pdj: Pdj, tmp_path: Path) -> None:
    pdj("up")
    pdj("upgrade", "--yes")
    before = parameters()
    change(tmp_path, "workerCount: 1", "workerCount: 2")
    pdj("up")
    assert parameters() == {**before, "WorkerCount": "2"}


def test_a_version_cannot_be_skipped_and_the_next_one_is_named(pdj: Pdj) -> None:
    pdj("up")
    _, after = following()
    minor = int(after.split(".")[1])
    for other in (minor + 1, minor - 2):  # nor is there a way back
        with pytest.raises(BadInput, match=f"one minor version at a time; use {after}"):
            pdj("upgrade", "--to", f"1.{other}")
    with pytest.raises(BadInput, match="is not a Kubernetes version"):
        pdj("upgrade", "--to", "latest")


@pytest.mark.parametrize(
    ("image", "path"),
    [("AL2023_x86_64_STANDARD", "x86_64/standard"), ("AL2023_ARM_64_NVIDIA", "arm64/nvidia")],
)
def test_the_image_of_each_kind_of_node_has_its_own_parameter(
    image: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def parameter(self: Aws, service: str, operation: str, **request: Any) -> dict[str, Any]:
        asked.append(request["Name"])
        return {"Parameter": {"Value": "1"}}

    monkeypatch.setattr(Aws, "call", parameter)
    latest_release(Aws("us-west-2"), "1.36", image)
    assert asked == [f"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/{path}/recommended/release_version"]


def test_an_add_on_that_eks_does_not_recommend_for_a_version_keeps_the_cluster_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = {"addonVersion": "v-0", "compatibilities": [{"defaultVersion": False}, {}]}
    answer(monkeypatch, "DescribeAddonVersions", lambda _: {"addons": [{"addonVersions": [old]}]})
    with pytest.raises(NotPossible, match=r"no version of add-on coredns for Kubernetes 1\.36; choose another version"):
        default_version(Aws("us-west-2"), "coredns", "1.36")
