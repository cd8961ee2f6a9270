"""The assets directory: cluster.yaml, which the user edits, and the files that the commands write beside it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paddlejob.api.yaml_loader import load
from paddlejob.api.yaml_problem import YamlProblem
from paddlejob.cloud.aws.config.cluster import ClusterConfig, parse_config
from paddlejob.errors import BadInput, NotPossible

_CLUSTER_YAML = """\
# A cluster on AWS. Edit this file, then run `pdj aws up` in this directory.
# `pdj aws validate` checks it. Nothing is billed before `up`.
clusterName: {name}
# A private DNS zone of this name, in which the Kubernetes API is api.NAME. Without a name, there is no zone.
{dns}
region: {region}
# Nodes run in these zones. EKS needs two zones for the control plane; with one listed, the second is chosen for you.
availabilityZones: [{zones}]

{nodes}
# KMS key that encrypts Kubernetes secrets. Without one, a key is created.
{kms_key}

# Networks that may reach the Kubernetes API over the internet. Restrict this to your own network if you can.
apiAccessCIDRs: [{api_access}]
vpcCIDR: 10.0.0.0/16
# kubernetesVersion: "1.36"    # default: the EKS default
# fileSystemId: fs-...         # an EFS of yours; default: create one, or take up the one that was kept
# administratorArn: arn:aws:iam::ACCOUNT:role/NAME    # default: whoever runs `up` first
"""
_NODES = """\
# Nodes. For GPUs, use a type such as g4dn.xlarge. Spot nodes are cheaper, but AWS may reclaim them.
workerCount: {workers}
maxWorkerCount: {most_workers}
workerInstanceType: {instance_type}
workerSpot: {spot}
workerDiskSize: 100    # GiB
# efa: true                       # Elastic Fabric Adapter, of types such as p4d.24xlarge and p5.48xlarge
# capacityReservationId: cr-...   # a reservation of yours, or a capacity block for ML

# EC2 key pair for SSH from inside the VPC. Without one, use `aws ssm start-session`.
{key_name}"""
_AUTO_MODE = """\
# EKS creates nodes as pods need them, and bills about 12 % on top of their price. Its own node pools have no GPUs and
# no spot nodes, nodes allow no login, and each is replaced within 21 days.
autoMode: true
"""


@dataclass(frozen=True)
class Assets:
    """The paths of one cluster's files."""

    directory: Path

    @property
    def cluster_yaml(self) -> Path:
        return self.directory / "cluster.yaml"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def load(self) -> ClusterConfig:
        source = str(self.cluster_yaml)
        try:
            documents = load(self._text())
        except YamlProblem as error:
            position = f":{error.line}:{error.column}" if error.line else ""
            raise BadInput(f"{source}{position}: {error}") from None
        if len(documents) > 1:
            raise BadInput(f"{source} contains several documents; keep one")
        settings, root = documents[0] if documents else (None, None)
        keys = root.value if isinstance(root, yaml.MappingNode) else []
        return parse_config(settings, source, {str(key.value): key.start_mark.line + 1 for key, _ in keys})

    def init(self, config: ClusterConfig, replace: bool = False) -> None:
        """Write cluster.yaml with its comments."""
        if self.cluster_yaml.exists() and not replace:
            raise BadInput(f"{self.cluster_yaml} already exists; edit it, or overwrite it with --replace")
        write(self.cluster_yaml, cluster_yaml(config))

    def with_setting(self, name: str, value: int | str) -> str:
        """Return the text of cluster.yaml with one setting changed and everything else untouched."""
        text, line = self._text(), f"{name}: {json.dumps(value)}"
        changed, found = re.subn(rf"(?m)^{name}:[^\n#]*?(?=\s*(#|$))", line, text, count=1)
        if not found:
            changed = f"{text.rstrip()}\n{line}\n"
        with suppress(yaml.YAMLError):
            settings: Any = yaml.safe_load(changed)
            if isinstance(settings, dict) and settings.get(name) == value:
                return changed
        raise BadInput(f"{self.cluster_yaml} cannot be edited automatically; set `{line}` and run `pdj aws up`")

    def _text(self) -> str:
        try:
            return self.cluster_yaml.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise BadInput(
                f"{self.cluster_yaml}: no such file; run `pdj aws init` first, or pass its directory with --assets"
            ) from None
        except UnicodeDecodeError as error:
            problem = f"not UTF-8: {error.reason} at byte {error.start}; save it as UTF-8"
            raise BadInput(f"{self.cluster_yaml}: {problem}") from None
        except OSError as error:
            raise BadInput(f"{self.cluster_yaml} cannot be read: {error.strerror}") from None


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
        raise NotPossible(f"{path} cannot be written: {error.strerror}; choose a directory with --assets") from None


def cluster_yaml(config: ClusterConfig) -> str:
    nodes = _NODES.format(
        workers=config.worker_count,
        most_workers=config.max_worker_count,
        instance_type=config.worker_instance_type,
        spot="true" if config.worker_spot else "false",
        key_name=_optional("keyName", config.key_name, "NAME"),
    )
    return _CLUSTER_YAML.format(
        name=_scalar(config.cluster_name),
        dns=_optional("externalDNSName", config.external_dns_name, "NAME"),
        region=config.region,
        zones=", ".join(config.availability_zones),
        nodes=_AUTO_MODE if config.auto_mode else nodes,
        kms_key=_optional("kmsKeyArn", config.kms_key_arn, "arn:aws:kms:..."),
        api_access=", ".join(config.api_access_cidrs),
    )


def _optional(setting: str, value: str, example: str) -> str:
    return f"{setting}: {_scalar(value)}" if value else f"# {setting}: {example}"


def _scalar(text: str) -> str:
    """Format a string as a YAML scalar, quoted where YAML would read another type, such as `on`."""
    return yaml.safe_dump(text, width=1000).removesuffix("...\n").strip()
