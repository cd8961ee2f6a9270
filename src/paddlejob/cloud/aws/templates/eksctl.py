"""The cluster as a configuration of eksctl, for teams that use it. `pdj aws data attach` adds the data. Pure."""

from __future__ import annotations

from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.templates.compose import OWNER_TAG, Parameters
from paddlejob.cloud.aws.templates.render import addons

_ADMINISTRATOR = "cluster-access-policy/AmazonEKSClusterAdminPolicy"


def eksctl_config(config: ClusterConfig, values: Parameters, partition: str) -> dict[str, Any]:
    """Return what `eksctl create cluster -f` creates: the same network, control plane, nodes and add-ons."""
    version = {"version": config.kubernetes_version} if config.kubernetes_version else {}
    key = {"secretsEncryption": {"keyARN": config.kms_key_arn}} if config.kms_key_arn else {}
    administrator = {
        "principalARN": config.administrator_arn,
        "accessPolicies": [
            {"policyARN": f"arn:{partition}:eks::aws:{_ADMINISTRATOR}", "accessScope": {"type": "cluster"}}
        ],
    }
    return {
        "apiVersion": "eksctl.io/v1alpha5",
        "kind": "ClusterConfig",
        "metadata": {"name": config.cluster_name, "region": config.region, **version},
        "upgradePolicy": {"supportType": "STANDARD"},
        "availabilityZones": [values[zone] for zone in ("Zone1", "Zone2", "Zone3") if values[zone]],
        "vpc": {
            "cidr": config.vpc_cidr,
            "nat": {"gateway": "Single"},
            "clusterEndpoints": {"privateAccess": True, "publicAccess": True},
            "publicAccessCIDRs": config.api_access_cidrs,
        },
        "accessConfig": {
            "authenticationMode": "API",
            # EKS makes the caller of eksctl an administrator, and rejects a second entry for the same user or role.
            **({"accessEntries": [administrator]} if config.administrator_arn else {}),
        },
        **key,
        "cloudWatch": {"clusterLogging": {"enableTypes": ["audit"]}},
        "addonsConfig": {"autoApplyPodIdentityAssociations": True},
        "addons": [{"name": name} for name in addons(config)],
        **_nodes(config, values),
    }


def _nodes(config: ClusterConfig, values: Parameters) -> dict[str, Any]:
    if config.auto_mode:
        return {"autoModeConfig": {"enabled": True}}
    target = {"capacityReservationTarget": {"capacityReservationID": config.capacity_reservation_id}}
    block = values["CapacityType"] == "CAPACITY_BLOCK"
    group = {
        "name": "workers",
        "instanceType": config.worker_instance_type,
        "amiFamily": "AmazonLinux2023",
        "desiredCapacity": config.worker_count,
        "minSize": 0,
        "maxSize": config.max_worker_count,
        "volumeSize": config.worker_disk_size,
        "volumeEncrypted": True,
        "spot": config.worker_spot,
        "privateNetworking": True,
        "disablePodIMDS": True,
        "availabilityZones": config.availability_zones,
        "tags": {OWNER_TAG: config.cluster_name},
        **({"efaEnabled": True} if config.efa else {}),
        **({"capacityReservation": target} if config.capacity_reservation_id else {}),
        **({"instanceMarketOptions": {"marketType": "capacity-block"}} if block else {}),
        **({"ssh": {"allow": True, "publicKeyName": config.key_name}} if config.key_name else {}),
    }
    return {"managedNodeGroups": [group]}
