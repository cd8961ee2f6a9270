"""Checks before a cluster is created: problems that CloudFormation would report only after minutes."""

from __future__ import annotations

import difflib
from typing import Any

from paddlejob.cloud.aws.access.kubeconfig import find_cluster
from paddlejob.cloud.aws.capacity import quota_problems, reservation_problems
from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.session import Aws, filters
from paddlejob.cloud.aws.templates.compose import OWNER_TAG
from paddlejob.cloud.aws.zones import WITHOUT_CONTROL_PLANE, zones_of


def problems(aws: Aws, config: ClusterConfig) -> list[str]:
    """List all problems. In a region that does not exist AWS cannot be asked, so that one is reported alone."""
    return unknown_region(aws, config) or online_problems(aws, config)


def offline_problems(aws: Aws, config: ClusterConfig) -> list[str]:
    """List the problems that botocore's own data shows, without a request."""
    return [*unknown_region(aws, config), *_unknown_instance_type(aws, config)]


def online_problems(aws: Aws, config: ClusterConfig) -> list[str]:
    """List the problems that only AWS can report for this account. Sends read requests only."""
    return [
        *_taken_name(aws, config),
        *_unsupported_version(aws, config),
        *_missing_zones(aws, config),
        *([] if config.auto_mode else _unusable_nodes(aws, config)),
        *_missing_key_pair(aws, config),
        *_unusable_kms_key(aws, config),
        *missing_file_system(aws, config),
    ]


def _unusable_nodes(aws: Aws, config: ClusterConfig) -> list[str]:
    return [*_not_offered(aws, config), *quota_problems(aws, config), *reservation_problems(aws, config)]


def unknown_region(aws: Aws, config: ClusterConfig) -> list[str]:
    session = aws.session()
    partitions = session.get_available_partitions()
    known = {region for name in partitions for region in session.get_available_regions("eks", partition_name=name)}
    if config.region in known:
        return []
    return [f"region: EKS is not available in {config.region!r}{_near(config.region, known)}"]


def _unknown_instance_type(aws: Aws, config: ClusterConfig) -> list[str]:
    known = {*aws.client("ec2").meta.service_model.shape_for("InstanceType").enum}
    if config.worker_instance_type in known:
        return []
    return [
        f"workerInstanceType: {config.worker_instance_type!r} is not an instance type known to this version of boto3"
        f"{_near(config.worker_instance_type, known)}"
    ]


def _taken_name(aws: Aws, config: ClusterConfig) -> list[str]:
    cluster = find_cluster(aws, config.cluster_name)
    if cluster is None or cluster.get("tags", {}).get(OWNER_TAG) == config.cluster_name:
        return []
    return [
        f"clusterName: {config.region} already has an EKS cluster {config.cluster_name} that paddlejob did not create; "
        "choose another name"
    ]


def _unsupported_version(aws: Aws, config: ClusterConfig) -> list[str]:
    """Accept versions in standard support only: extended support costs six times as much per hour."""
    if not config.kubernetes_version:
        return []
    offers = aws.items("eks", "describe_cluster_versions", "clusterVersions", versionStatus="STANDARD_SUPPORT")
    known = sorted((offer["clusterVersion"] for offer in offers), key=lambda version: int(version.split(".")[1]))
    if config.kubernetes_version in known:
        return []
    return [
        f"kubernetesVersion: {config.kubernetes_version} is not in EKS standard support; use one of {', '.join(known)}"
    ]


def _missing_zones(aws: Aws, config: ClusterConfig) -> list[str]:
    zones = zones_of(aws)
    missing = [
        f"availabilityZones: this account has no zone {zone} in {config.region}; use one of {', '.join(zones)}"
        for zone in config.availability_zones
        if zone not in zones
    ]
    without = [zone for zone in config.availability_zones if zones.get(zone) in WITHOUT_CONTROL_PLANE]
    return missing + [
        f"availabilityZones: EKS does not run control planes in {zone}; choose another zone" for zone in without
    ]


def _not_offered(aws: Aws, config: ClusterConfig) -> list[str]:
    name = config.worker_instance_type
    wanted: dict[str, Any] = {"LocationType": "availability-zone", "Filters": filters({"instance-type": name})}
    offers = aws.items("ec2", "describe_instance_type_offerings", "InstanceTypeOfferings", **wanted)
    offered_in = {offer["Location"] for offer in offers}
    if not offered_in:
        return _unknown_instance_type(aws, config) or [
            f"workerInstanceType: {name} is not offered in {config.region}; choose another type or region"
        ]
    missing = [zone for zone in config.availability_zones if zone not in offered_in]
    return [
        f"workerInstanceType: {name} is not offered in {zone}; use one of {', '.join(sorted(offered_in))}"
        for zone in missing
    ]


def _missing_key_pair(aws: Aws, config: ClusterConfig) -> list[str]:
    name = config.key_name
    if not name or aws.find("ec2", "describe_key_pairs", "InvalidKeyPair", KeyNames=[name]):
        return []
    return [f"keyName: no key pair {name} in {config.region}; create it there, or omit keyName"]


def _unusable_kms_key(aws: Aws, config: ClusterConfig) -> list[str]:
    if not config.kms_key_arn:
        return []
    found = aws.find("kms", "describe_key", "NotFoundException", KeyId=config.kms_key_arn)
    if found is None:
        return [f"kmsKeyArn: no such key: {config.kms_key_arn}; use another, or omit it"]
    key = found["KeyMetadata"]
    if key["KeyState"] != "Enabled" or key.get("KeySpec", "SYMMETRIC_DEFAULT") != "SYMMETRIC_DEFAULT":
        return [f"kmsKeyArn: the key is {key['KeyState']} and {key.get('KeySpec')}; EKS needs an enabled symmetric key"]
    return []


def missing_file_system(aws: Aws, config: ClusterConfig) -> list[str]:
    name = config.file_system_id
    if not name or aws.find("efs", "describe_file_systems", "FileSystemNotFound", FileSystemId=name):
        return []
    return [f"fileSystemId: no file system {name} in {config.region}; omit it to create one"]


def _near(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {close[0]}?" if close else "; choose another"
