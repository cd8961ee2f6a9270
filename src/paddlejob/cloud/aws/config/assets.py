"""The assets directory: cluster.yaml, which the user edits, and the files that the commands write beside it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paddlejob.cloud.aws.config.cluster import ClusterConfig, parse_config
from paddlejob.errors import BadInput, NotPossible

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CLUSTER_YAML = """\
# A cluster on AWS. Edit this file, then run `pdj aws up` in this directory.
# `pdj aws validate` checks it. Nothing is billed before `up`.
clusterName: {name}
# A private DNS zone of this name, in which the Kubernetes API is api.NAME. Without a name, there is no zone.
{dns}
region: {region}
# Nodes run in these zones. EKS needs two zones for the control plane; with one listed, the second is chosen for you.
availabilityZones: [{zones}]

# Nodes. For GPUs, use a type such as g4dn.xlarge. Spot nodes are cheaper, but AWS may reclaim them.
workerCount: {workers}
maxWorkerCount: {most_workers}
workerInstanceType: {instance_type}
workerSpot: {spot}
workerDiskSize: 100    # GiB

# EC2 key pair for SSH from inside the VPC. Without one, use `aws ssm start-session`.
{key_name}
# KMS key that encrypts Kubernetes secrets. Without one, a key is created.
{kms_key}

# Networks that may reach the Kubernetes API over the internet. Restrict this to your own network if you can.
apiAccessCIDRs: [0.0.0.0/0]
vpcCIDR: 10.0.0.0/16
# kubernetesVersion: "1.36"    # default: the EKS default
# fileSystemId: fs-...         # an EFS of yours; default: create one, or take up the one that was kept
# administratorArn: arn:aws:iam::ACCOUNT:role/NAME    # default: whoever runs `up` first
"""


@dataclass(frozen=True)
class Assets:
    """The paths of one cluster's files."""

    directory: Path

    @property
    def cluster_yaml(self) -> Path:
        return self.directory / "cluster.yaml"

    @property
    def stack_yaml(self) -> Path:
        return self.directory / "stack.yaml"

    @property
    def data_stack_yaml(self) -> Path:
        return self.directory / "data-stack.yaml"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def volume_yaml(self) -> Path:
        return self.directory / "pv.yaml"

    @property
    def claim_yaml(self) -> Path:
        return self.directory / "pvc.yaml"

    def load(self) -> ClusterConfig:
        loader = Loader(self._text())
        source = str(self.cluster_yaml)
        try:
            root = loader.get_single_node()
            settings = loader.construct_document(root) if root else None
        except yaml.YAMLError as error:
            raise BadInput(f"{source}{_position(error)}: invalid YAML: {_problem(error)}") from None
        return parse_config(settings, source, _lines(root, source))

    def init(self, config: ClusterConfig, replace: bool = False) -> None:
        """Write cluster.yaml with its comments."""
        if self.cluster_yaml.exists() and not replace:
            raise BadInput(f"{self.cluster_yaml}: already exists; edit it, or overwrite it with --replace")
        write(self.cluster_yaml, cluster_yaml(config))

    def with_setting(self, name: str, value: int | str) -> str:
        """Return the text of cluster.yaml with one setting changed and everything else untouched."""
        text, line = self._text(), f"{name}: {json.dumps(value)}"
        changed, found = re.subn(rf"(?m)^{name}:[^\n#]*?(?=\s*(#|$))", line, text, count=1)
        if not found:
            changed = f"{text.rstrip()}\n{line}\n"
        if not _has_setting(changed, name, value):
            raise BadInput(f"{self.cluster_yaml}: cannot be edited automatically; set `{line}` and run `pdj aws up`")
        return changed

    def _text(self) -> str:
        try:
            return self.cluster_yaml.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise BadInput(
                f"{self.cluster_yaml}: no such file; run `pdj aws init` first, or pass its directory with --assets"
            ) from None
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.cluster_yaml}: not UTF-8: {error.reason} at byte {error.start}") from None
        except OSError as error:
            raise BadInput(f"{self.cluster_yaml}: cannot be read: {error.strerror}") from None


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file atomically."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        part.touch(mode=mode)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise NotPossible(f"{path}: cannot be written: {error.strerror}") from None


def cluster_yaml(config: ClusterConfig) -> str:
    return _CLUSTER_YAML.format(
        name=_scalar(config.cluster_name),
        dns=_optional("externalDNSName", config.external_dns_name, "NAME"),
        region=config.region,
        zones=", ".join(config.availability_zones),
        workers=config.worker_count,
        most_workers=config.max_worker_count,
        instance_type=config.worker_instance_type,
        spot="true" if config.worker_spot else "false",
        key_name=_optional("keyName", config.key_name, "NAME"),
        kms_key=_optional("kmsKeyArn", config.kms_key_arn, "arn:aws:kms:..."),
    )


def _optional(setting: str, value: str, example: str) -> str:
    return f"{setting}: {_scalar(value)}" if value else f"# {setting}: {example}"


def _scalar(text: str) -> str:
    """Format a string as a YAML scalar, quoted where YAML would read another type, such as `on`."""
    return yaml.safe_dump(text, width=1000).removesuffix("...\n").strip()


def _lines(root: Any, source: str) -> dict[str, int]:
    """Map each setting to its line. Duplicate keys are an error; YAML would silently take the last one."""
    if not isinstance(root, yaml.MappingNode):
        return {}
    lines: dict[str, int] = {}
    for key, _ in root.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in lines:
            raise BadInput(f"{source}:{line}: duplicate key `{name}`, first in line {lines[name]}; remove one of them")
        lines[name] = line
    return lines


def _has_setting(text: str, name: str, value: int | str) -> bool:
    try:
        settings = yaml.load(text, Loader=Loader)
    except yaml.YAMLError:
        return False
    return isinstance(settings, dict) and settings.get(name) == value


def _position(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}:{mark.column + 1}" if mark else ""


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or error).replace("\n", " ")
