"""Upgrade the control plane, the add-ons and the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlejob.cloud.aws.access.kubeconfig import get_cluster
from paddlejob.cloud.aws.session import Aws
from paddlejob.cloud.aws.stack.apply import change_parameters, existing
from paddlejob.cloud.aws.stack.changes import Confirm
from paddlejob.cloud.aws.stack.stack import Stack, StackState
from paddlejob.cloud.aws.templates.render import ADDONS
from paddlejob.errors import BadInput, NotPossible


def upgrade(stack: Stack, to: str, confirm: Confirm, accepted: Callable[[str], None]) -> tuple[StackState, str, bool]:
    """Upgrade to Kubernetes `to`, by default within the current version.

    Returns the state, the version and whether anything changed. CloudFormation updates the control plane first, then
    the add-ons that nodes need, the nodes, and the other add-ons.
    """
    state = existing(stack)
    current = str(get_cluster(stack.aws, stack.name)["version"])
    version = to or current
    _raise_if_skipped(current, version)
    changes = {"AddonVersions": ",".join(default_version(stack.aws, addon, version) for addon in ADDONS)}
    if "AmiType" in state.parameters:  # with Auto Mode, EKS chooses the image
        changes["NodeRelease"] = latest_release(stack.aws, version, state.parameters["AmiType"])
    if to:
        changes["KubernetesVersion"] = to
    state, changed = change_parameters(stack, state, changes, confirm, lambda: accepted(to))
    return state, version, changed


def default_version(aws: Aws, addon: str, version: str) -> str:
    """Return the version of an add-on that EKS recommends for a version of Kubernetes."""
    found = aws.items("eks", "describe_addon_versions", "addons", addonName=addon, kubernetesVersion=version)
    for offer in (offer for item in found for offer in item["addonVersions"]):
        if any(match.get("defaultVersion") for match in offer["compatibilities"]):
            return str(offer["addonVersion"])
    raise NotPossible(
        f"EKS has no version of add-on {addon} for Kubernetes {version}; choose another version with --to"
    )


def latest_release(aws: Aws, version: str, ami_type: str) -> str:
    """Return the release of the machine image that EKS recommends, from its public parameters."""
    processor, _, variant = ami_type.removeprefix("AL2023_").rpartition("_")
    path = f"{version}/amazon-linux-2023/{processor.lower().replace('arm_64', 'arm64')}/{variant.lower()}"
    name = f"/aws/service/eks/optimized-ami/{path}/recommended/release_version"
    answer: dict[str, Any] = aws.call("ssm", "get_parameter", Name=name)
    return str(answer["Parameter"]["Value"])


def _raise_if_skipped(current: str, version: str) -> None:
    step = int(version.split(".")[1]) - int(current.split(".")[1])
    if step not in (0, 1):
        raise BadInput(
            f"--to: the cluster runs Kubernetes {current}, and EKS upgrades by one minor version at a time; use "
            f"1.{int(current.split('.')[1]) + 1}"
        )
