"""`validate`: what CloudFormation would find only after minutes, found before it starts."""

from __future__ import annotations

import difflib
from typing import Any

from .config import ClusterConfig
from .kubeconfig import find_cluster
from .refusals import Refused
from .session import Aws
from .stack import OWNER_TAG
from .zones import WITHOUT_CONTROL_PLANE, zones_of


def faults(aws: Aws, config: ClusterConfig) -> list[str]:
    """Everything that is wrong. Where the region does not exist, AWS cannot be asked; where AWS offers an
    instance type that boto3 does not know yet, AWS is right."""
    region = _unknown_region(aws, config)
    return region or online_faults(aws, config)


def offline_faults(aws: Aws, config: ClusterConfig) -> list[str]:
    """What botocore's own tables tell, without a request."""
    return [*_unknown_region(aws, config), *_unknown_instance_type(aws, config)]


def online_faults(aws: Aws, config: ClusterConfig) -> list[str]:
    """What only AWS knows for this account; reads only."""
    return [
        *_taken_name(aws, config),
        *_unsupported_version(aws, config),
        *_missing_zones(aws, config),
        *_not_offered(aws, config),
        *_missing_key_pair(aws, config),
        *_unusable_kms_key(aws, config),
        *_missing_file_system(aws, config),
    ]


def _unknown_region(aws: Aws, config: ClusterConfig) -> list[str]:
    session = aws.session()
    partitions = session.get_available_partitions()
    known = {region for name in partitions for region in session.get_available_regions("eks", partition_name=name)}
    if config.region in known:
        return []
    return [f"region: is {config.region!r}, where AWS offers no EKS{_near(config.region, known)}"]


def _unknown_instance_type(aws: Aws, config: ClusterConfig) -> list[str]:
    known = instance_types(aws)
    if config.worker_instance_type in known:
        return []
    return [
        f"workerInstanceType: is {config.worker_instance_type!r}, no instance type that this version of boto3 knows"
        f"{_near(config.worker_instance_type, known)}"
    ]


def instance_types(aws: Aws) -> set[str]:
    """The names that EC2's own description lists."""
    return set(aws.client("ec2").meta.service_model.shape_for("InstanceType").enum)


def _taken_name(aws: Aws, config: ClusterConfig) -> list[str]:
    cluster = find_cluster(aws, config.cluster_name)
    if cluster is None or cluster.get("tags", {}).get(OWNER_TAG) == config.cluster_name:
        return []
    return [
        f"clusterName: {config.region} has an EKS cluster {config.cluster_name} that paddlejob did not make; choose "
        "another name"
    ]


def _unsupported_version(aws: Aws, config: ClusterConfig) -> list[str]:
    """Standard support only: a version in extended support costs six times as much an hour."""
    if not config.kubernetes_version:
        return []
    offers = aws.items("eks", "describe_cluster_versions", "clusterVersions", versionStatus="STANDARD_SUPPORT")
    known = sorted((offer["clusterVersion"] for offer in offers), key=lambda version: int(version.split(".")[1]))
    if config.kubernetes_version in known:
        return []
    return [f"kubernetesVersion: is {config.kubernetes_version}, not in EKS's standard support: {', '.join(known)}"]


def _missing_zones(aws: Aws, config: ClusterConfig) -> list[str]:
    zones = {zone.name: zone.id for zone in zones_of(aws)}
    faults = [
        f"availabilityZones: {zone} is not in {config.region} for this account; it has {', '.join(zones)}"
        for zone in config.availability_zones
        if zone not in zones
    ]
    without = [zone for zone in config.availability_zones if zones.get(zone) in WITHOUT_CONTROL_PLANE]
    return faults + [f"availabilityZones: EKS makes no control plane in {zone}; choose another" for zone in without]


def _not_offered(aws: Aws, config: ClusterConfig) -> list[str]:
    name = config.worker_instance_type
    offers = aws.items(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": [name]}],
    )
    places = {offer["Location"] for offer in offers}
    if not places:
        return _unknown_instance_type(aws, config) or [
            f"workerInstanceType: {name} is not offered in {config.region}; choose another type or region"
        ]
    missing = [zone for zone in config.availability_zones if zone not in places]
    return [
        f"workerInstanceType: {name} is not offered in {zone}; it is in {', '.join(sorted(places))}" for zone in missing
    ]


def _missing_key_pair(aws: Aws, config: ClusterConfig) -> list[str]:
    if not config.key_name or _exists(aws, "ec2", "describe_key_pairs", "InvalidKeyPair", KeyNames=[config.key_name]):
        return []
    return [f"keyName: there is no key pair {config.key_name} in {config.region}; make it there, or leave keyName out"]


def _unusable_kms_key(aws: Aws, config: ClusterConfig) -> list[str]:
    if not config.kms_key_arn:
        return []
    try:
        key: dict[str, Any] = aws.call("kms", "describe_key", KeyId=config.kms_key_arn)["KeyMetadata"]
    except Refused as no:
        if no.code != "NotFoundException":
            raise
        return [f"kmsKeyArn: there is no key {config.kms_key_arn}; name another, or leave it out"]
    if key["KeyState"] != "Enabled" or key.get("KeySpec", "SYMMETRIC_DEFAULT") != "SYMMETRIC_DEFAULT":
        return [f"kmsKeyArn: the key is {key['KeyState']} and {key.get('KeySpec')}; EKS needs an enabled symmetric one"]
    return []


def _missing_file_system(aws: Aws, config: ClusterConfig) -> list[str]:
    name = config.file_system_id
    if not name or _exists(aws, "efs", "describe_file_systems", "FileSystemNotFound", FileSystemId=name):
        return []
    return [f"fileSystemId: there is no file system {name} in {config.region}; leave it out and one is made"]


def _exists(aws: Aws, service: str, operation: str, absent: str, **request: Any) -> bool:
    try:
        aws.call(service, operation, **request)
    except Refused as no:
        if no.code.startswith(absent):
            return False
        raise
    return True


def _near(word: str, known: set[str]) -> str:
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"; did you mean {close[0]}?" if close else "; choose another"
