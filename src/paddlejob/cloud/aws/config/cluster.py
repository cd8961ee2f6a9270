"""The settings of cluster.yaml and their validation. Pure: no files, no requests."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from paddlejob.cloud.aws.config.messages import describe
from paddlejob.errors import BadInput

# CloudFormation truncates role names at 64 characters, and the IAM policy would no longer match them.
MAX_NAME_LENGTH = 38
MAX_ZONES = 3
_NAME = re.compile(r"[a-zA-Z][-a-zA-Z0-9]*")
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d")
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"(?=.{{1,240}}$){_LABEL}(\.{_LABEL})*")
_KMS_KEY = re.compile(r"arn:aws[-a-z]*:kms:(?P<region>[-a-z0-9]+):\d{12}:key/[-a-zA-Z0-9]+")
_PRINCIPAL = re.compile(r"arn:aws[-a-z]*:iam::\d{12}:(user|role)/.+")
_INSTANCE_TYPE = re.compile(r"[a-z][-a-z0-9]*\.[-a-z0-9]+")
_FILE_SYSTEM = re.compile(r"fs-[0-9a-f]{8,40}")
_PRIVATE = [ipaddress.IPv4Network(cidr) for cidr in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
VERSION = re.compile(r"1\.\d\d")


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
    vpc_cidr: str = Field("10.0.0.0/16", alias="vpcCIDR")
    api_access_cidrs: list[str] = Field(["0.0.0.0/0"], alias="apiAccessCIDRs", min_length=1)
    kubernetes_version: str = Field("", alias="kubernetesVersion")
    file_system_id: str = Field("", alias="fileSystemId")
    administrator_arn: str = Field("", alias="administratorArn")

    @field_validator("cluster_name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                'is not a valid stack name; start with a letter, then use letters, digits and "-" (no "_")'
            )
        if len(name) > MAX_NAME_LENGTH:
            raise ValueError(f"is {len(name)} characters long; use at most {MAX_NAME_LENGTH}")
        return name

    @field_validator("external_dns_name")
    @classmethod
    def _dns_name(cls, name: str) -> str:
        return name and _matching(_DNS_NAME, name, "is not a DNS name; use lowercase letters, digits, '-' and '.'")

    @field_validator("region")
    @classmethod
    def _region(cls, region: str) -> str:
        return _matching(_REGION, region, "is not a region; use one such as us-west-2")

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
        if not arn:
            return arn
        _matching(_KMS_KEY, arn, "is not the ARN of a KMS key; use arn:aws:kms:REGION:ACCOUNT:key/ID, or omit it")
        found = _KMS_KEY.fullmatch(arn)
        region = info.data.get("region")
        if found and region and found["region"] != region:
            raise ValueError(f"belongs to another region; use a key in {region}")
        return arn

    @field_validator("worker_count")
    @classmethod
    def _worker_count(cls, count: int, info: ValidationInfo) -> int:
        most = info.data.get("max_worker_count")
        if most is not None and count > most:
            raise ValueError(f"is above maxWorkerCount {most}; lower it or raise maxWorkerCount")
        return count

    @field_validator("worker_instance_type")
    @classmethod
    def _instance_type(cls, name: str) -> str:
        return _matching(_INSTANCE_TYPE, name, "is not an EC2 instance type; use one such as m5.xlarge")

    @field_validator("vpc_cidr")
    @classmethod
    def _vpc_cidr(cls, cidr: str) -> str:
        network = _network(cidr)
        if not _is_private(network) or not 16 <= network.prefixlen <= 22:
            raise ValueError("is not a private network of /16 to /22; use one such as 10.0.0.0/16")
        return cidr

    @field_validator("api_access_cidrs")
    @classmethod
    def _api_access(cls, cidrs: list[str]) -> list[str]:
        private = [cidr for cidr in cidrs if _is_private(_network(cidr))]
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
        return version and _matching(VERSION, str(version), "is not a Kubernetes version; use one such as '1.36'")

    @field_validator("file_system_id")
    @classmethod
    def _file_system(cls, name: str) -> str:
        return name and _matching(_FILE_SYSTEM, name, "is not an EFS file system; use fs-..., or omit it")

    @field_validator("administrator_arn")
    @classmethod
    def _administrator(cls, arn: str) -> str:
        reason = "is not an IAM user or role; use arn:aws:iam::ACCOUNT:role/NAME, or omit it to use the caller"
        return arn and _matching(_PRINCIPAL, arn, reason)


def parse_config(settings: object, source: str, lines: Mapping[str, int] | None = None) -> ClusterConfig:
    """Validate the settings and report all problems in one error. `lines` maps each setting to its line in the file."""
    if not isinstance(settings, Mapping):
        raise BadInput(f"{source}: contains no settings; create it with `pdj aws init`")
    try:
        return ClusterConfig.model_validate(dict(settings))
    except ValidationError as error:
        problems = [f"{source}{_line(item, lines or {})}: {describe(item, SETTINGS)}" for item in error.errors()]
        raise BadInput("\n".join(problems)) from None


SETTINGS = tuple(field.alias or name for name, field in ClusterConfig.model_fields.items())


def _line(error: ErrorDetails, lines: Mapping[str, int]) -> str:
    number = lines.get(str(error["loc"][0]))
    return f":{number}" if number else ""


def _matching(pattern: re.Pattern[str], text: str, reason: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(reason)
    return text


def _network(cidr: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(cidr)
    except ValueError:
        raise ValueError(f"is not valid: {cidr} is not an IPv4 network; use one such as 10.0.0.0/16") from None


def _is_private(network: ipaddress.IPv4Network) -> bool:
    return any(network.subnet_of(private) for private in _PRIVATE)
