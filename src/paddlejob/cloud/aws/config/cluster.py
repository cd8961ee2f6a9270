"""The settings of cluster.yaml and their validation. Pure: no files, no requests."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import ErrorDetails

from paddlejob.cloud.aws.config.messages import describe
from paddlejob.errors import BadInput

# CloudFormation truncates role names at 64 characters, and the IAM policy would no longer match them.
MAX_NAME_LENGTH = 38
MAX_ZONES = 3
VERSION = r"1\.\d\d"
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_PRIVATE = [ipaddress.IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
# Settings that have no meaning with Auto Mode, because EKS chooses the nodes.
_OF_NODES = (
    *("workerCount", "maxWorkerCount", "workerInstanceType", "workerSpot", "workerDiskSize", "keyName", "efa"),
    "capacityReservationId",
)


# The form of each setting that has one, and what to say of a value without it.
_FORMS = {
    "external_dns_name": (
        rf"(?=.{{1,240}}$){_LABEL}(\.{_LABEL})*",
        "is not a DNS name; use lowercase letters, digits, '-' and '.'",
    ),
    "region": (r"[a-z]{2,4}(-[a-z]+)+-\d", "is not a region; use one such as us-west-2"),
    "kms_key_arn": (
        r"arn:aws[-a-z]*:kms:[-a-z0-9]+:\d{12}:key/[-a-zA-Z0-9]+",
        "is not the ARN of a KMS key; use arn:aws:kms:REGION:ACCOUNT:key/ID, or omit it",
    ),
    "worker_instance_type": (
        r"[a-z][-a-z0-9]*\.[-a-z0-9]+",
        "is not an EC2 instance type; use one such as m5.xlarge",
    ),
    "capacity_reservation_id": (r"cr-[0-9a-f]{8,40}", "is not a capacity reservation; use cr-..., or omit it"),
    "kubernetes_version": (VERSION, "is not a Kubernetes version; use one such as '1.36'"),
    "file_system_id": (r"fs-[0-9a-f]{8,40}", "is not an EFS file system; use fs-..., or omit it"),
    "administrator_arn": (
        r"arn:aws[-a-z]*:iam::\d{12}:(user|role)/.+",
        "is not an IAM user or role; use arn:aws:iam::ACCOUNT:role/NAME, or omit it to use the caller",
    ),
}


class ClusterConfig(BaseModel):
    """The settings of one cluster. Fields that other fields are checked against come first."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    cluster_name: str = Field(alias="clusterName")
    external_dns_name: str = Field("", alias="externalDNSName")
    region: str
    availability_zones: list[str] = Field(alias="availabilityZones")
    key_name: str = Field("", alias="keyName")
    kms_key_arn: str = Field("", alias="kmsKeyArn")
    max_worker_count: int = Field(10, alias="maxWorkerCount", ge=1, le=450, strict=True)
    worker_count: int = Field(1, alias="workerCount", ge=0, strict=True)
    worker_instance_type: str = Field("m5.xlarge", alias="workerInstanceType")
    worker_spot: bool = Field(False, alias="workerSpot", strict=True)
    worker_disk_size: int = Field(100, alias="workerDiskSize", ge=20, le=16384, strict=True)
    efa: bool = Field(False, strict=True)
    capacity_reservation_id: str = Field("", alias="capacityReservationId")
    auto_mode: bool = Field(False, alias="autoMode", strict=True)
    vpc_cidr: str = Field("10.0.0.0/16", alias="vpcCIDR")
    api_access_cidrs: list[str] = Field(["0.0.0.0/0"], alias="apiAccessCIDRs", min_length=1)
    kubernetes_version: str = Field("", alias="kubernetesVersion")
    file_system_id: str = Field("", alias="fileSystemId")
    administrator_arn: str = Field("", alias="administratorArn")

    @field_validator(*_FORMS)
    @classmethod
    def _form(cls, text: str, info: ValidationInfo) -> str:
        field = str(info.field_name)
        pattern, reason = _FORMS[field]
        if text != cls.model_fields[field].default and not re.fullmatch(pattern, text):
            raise ValueError(reason)
        return text

    @field_validator("cluster_name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-zA-Z][-a-zA-Z0-9]*", name):
            raise ValueError(
                'is not a valid stack name; start with a letter, then use letters, digits and "-" (no "_")'
            )
        if len(name) > MAX_NAME_LENGTH:
            raise ValueError(f"is {len(name)} characters long; use at most {MAX_NAME_LENGTH}")
        return name

    @field_validator("availability_zones")
    @classmethod
    def _zones(cls, zones: list[str], info: ValidationInfo) -> list[str]:
        region = info.data.get("region")
        if not 1 <= len(zones) <= MAX_ZONES:
            raise ValueError(f"lists {len(zones)} zones; list 1 to {MAX_ZONES}")
        if len(set(zones)) < len(zones):
            raise ValueError("lists a zone twice; list each zone once")
        outside = [zone for zone in zones if region and not re.fullmatch(f"{region}[a-z]", zone)]
        if outside:
            raise ValueError(f"has zones outside region {region} ({', '.join(outside)}); use zones such as {region}a")
        return zones

    @field_validator("kms_key_arn")
    @classmethod
    def _kms_key(cls, arn: str, info: ValidationInfo) -> str:
        region = info.data.get("region")
        if arn and region and arn.split(":")[3] != region:
            raise ValueError(f"belongs to another region; use a key in {region}")
        return arn

    @field_validator("worker_count")
    @classmethod
    def _worker_count(cls, count: int, info: ValidationInfo) -> int:
        most = info.data.get("max_worker_count")
        if most is not None and count > most:
            raise ValueError(f"is above maxWorkerCount {most}; lower it or raise maxWorkerCount")
        return count

    @field_validator("vpc_cidr")
    @classmethod
    def _vpc_cidr(cls, cidr: str) -> str:
        network = _network(cidr, "10.0.0.0/16")
        if not _is_private(network) or not 16 <= network.prefixlen <= 22:
            raise ValueError("is not a private network of /16 to /22; use one such as 10.0.0.0/16")
        return cidr

    @field_validator("api_access_cidrs")
    @classmethod
    def _api_access(cls, cidrs: list[str]) -> list[str]:
        private = [cidr for cidr in cidrs if _is_private(_network(cidr, "203.0.113.7/32"))]
        if private:
            raise ValueError(
                f"has private networks ({', '.join(private)}), which cannot connect over the internet; remove them"
            )
        return cidrs

    @field_validator("kubernetes_version", mode="before")
    @classmethod
    def _version(cls, version: object) -> object:
        if isinstance(version, float):
            raise ValueError("is a number in YAML, where 1.30 equals 1.3; put it in quotes")
        return version

    @model_validator(mode="after")
    def _combination(self) -> ClusterConfig:
        one_zone = len(self.availability_zones) == 1
        unused = [name for name in _OF_NODES if _FIELDS[name] in self.model_fields_set]
        if self.auto_mode and unused:
            raise ValueError(
                f"autoMode: EKS chooses the nodes, and ignores {', '.join(unused)}; remove what it ignores"
            )
        if self.capacity_reservation_id and (self.worker_spot or not one_zone):
            raise ValueError(
                "capacityReservationId is for one zone and not for spot nodes; list one zone, without spot"
            )
        if self.efa and not one_zone:
            raise ValueError("efa: its traffic does not cross zones; list one zone in availabilityZones")
        return self


def parse_config(settings: object, source: str, lines: Mapping[str, int] | None = None) -> ClusterConfig:
    """Validate the settings and report all problems in one error. `lines` maps each setting to its line in the file."""
    if not isinstance(settings, Mapping):
        raise BadInput(f"{source} contains no settings; create it with `pdj aws init`")
    try:
        return ClusterConfig.model_validate(dict(settings))
    except ValidationError as error:
        problems = [f"{source}{_line(item, lines or {})}: {describe(item, SETTINGS)}" for item in error.errors()]
        raise BadInput("\n".join(problems)) from None


_FIELDS = {field.alias or name: name for name, field in ClusterConfig.model_fields.items()}
SETTINGS = tuple(_FIELDS)


def _line(error: ErrorDetails, lines: Mapping[str, int]) -> str:
    number = lines.get(str(error["loc"][0])) if error["loc"] else None
    return f":{number}" if number else ""


def _network(cidr: str, example: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(cidr)
    except ValueError:
        raise ValueError(f"is not valid: {cidr} is not an IPv4 network; use one such as {example}") from None


def _is_private(network: ipaddress.IPv4Network) -> bool:
    return any(network.subnet_of(private) for private in _PRIVATE)
