"""The directory of assets: cluster.yaml, which the user edits, and what the other verbs write beside it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paddlejob.errors import BadInput, NotPossible

from .config import ClusterConfig, read_config

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CLUSTER_YAML = """\
# A cluster on AWS. Edit it, then run `pdj aws up` in this directory.
# `pdj aws validate` checks it; nothing here costs money before `up`.
clusterName: {name}
# Inside the VPC, api.{dns} is the name of the Kubernetes API.
externalDNSName: {dns}
region: {region}
# Nodes are in these zones. With one zone, the control plane's second is chosen for you.
availabilityZones: [{zones}]

# Nodes. For GPUs use a type such as g4dn.xlarge; spot nodes are cheaper and may be taken away.
workerCount: {workers}
maxWorkerCount: {most_workers}
workerInstanceType: {instance_type}
workerSpot: {spot}
workerDiskSize: 100    # GiB

# An EC2 key pair, for ssh from inside the VPC. Without it: aws ssm start-session.
{key_name}
# The KMS key that encrypts Kubernetes' secrets. Without it, one is made.
{kms_key}

# Who may reach the Kubernetes API over the internet. Your own network is better than everyone.
apiAccessCIDRs: [0.0.0.0/0]
vpcCIDR: 10.0.0.0/16
# kubernetesVersion: "1.36"    # EKS's own default where it is left out
# fileSystemId: fs-...         # an EFS that `destroy --keep-data` left; else one is made
# administratorArn: arn:aws:iam::ACCOUNT:role/NAME    # whoever runs `up` first, where it is left out
"""


@dataclass(frozen=True)
class Assets:
    """Where the files of one cluster are."""

    directory: Path

    @property
    def cluster_yaml(self) -> Path:
        return self.directory / "cluster.yaml"

    @property
    def stack_yaml(self) -> Path:
        return self.directory / "stack.yaml"

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
        except yaml.YAMLError as bad:
            raise BadInput(f"{source}{_place(bad)}: this is not YAML: {_problem(bad)}") from None
        return read_config(settings, source, _lines(root, source))

    def init(self, config: ClusterConfig, replace: bool = False) -> None:
        """Write cluster.yaml with its comments."""
        if self.cluster_yaml.exists() and not replace:
            raise BadInput(f"{self.cluster_yaml}: is there already; edit it, or use --replace")
        write(self.cluster_yaml, cluster_yaml(config))

    def with_worker_count(self, count: int) -> str:
        """The text of cluster.yaml with another workerCount and every other character as it is."""
        text = self._text()
        changed, found = re.subn(r"(?m)^workerCount:[^\n#]*?(?=\s*(#|$))", f"workerCount: {count}", text, count=1)
        if not found:
            changed = f"{text.rstrip()}\nworkerCount: {count}\n"
        if not _says(changed, count):
            raise BadInput(f"{self.cluster_yaml}: write `workerCount: {count}` there yourself, and run `pdj aws up`")
        return changed

    def _text(self) -> str:
        try:
            return self.cluster_yaml.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise BadInput(
                f"{self.cluster_yaml}: not there; run `pdj aws init` first, or name the directory with --assets"
            ) from None
        except UnicodeDecodeError as bad:
            raise BadInput(f"{self.cluster_yaml}: is not text: {bad.reason} at byte {bad.start}") from None
        except OSError as bad:
            raise BadInput(f"{self.cluster_yaml}: cannot be read: {bad.strerror}") from None


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        part.touch(mode=mode)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as bad:
        with suppress(OSError):
            part.unlink()
        raise NotPossible(f"{path}: cannot be written: {bad.strerror}") from None


def cluster_yaml(config: ClusterConfig) -> str:
    return _CLUSTER_YAML.format(
        name=_scalar(config.cluster_name),
        dns=_scalar(config.external_dns_name),
        region=config.region,
        zones=", ".join(config.availability_zones),
        workers=config.worker_count,
        most_workers=config.max_worker_count,
        instance_type=config.worker_instance_type,
        spot="true" if config.worker_spot else "false",
        key_name=f"keyName: {_scalar(config.key_name)}" if config.key_name else "# keyName: NAME",
        kms_key=f"kmsKeyArn: {config.kms_key_arn}" if config.kms_key_arn else "# kmsKeyArn: arn:aws:kms:...",
    )


def _scalar(text: str) -> str:
    """The text as YAML writes it: in quotes where it would be read as something else, such as `on`."""
    return yaml.safe_dump(text, width=1000).removesuffix("...\n").strip()


def _lines(root: Any, source: str) -> dict[str, int]:
    """The line of each setting. One that is there twice is refused, where YAML would take the last."""
    if not isinstance(root, yaml.MappingNode):
        return {}
    lines: dict[str, int] = {}
    for key, _ in root.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in lines:
            raise BadInput(f"{source}:{line}: {name}: is in line {lines[name]} already; remove one of them")
        lines[name] = line
    return lines


def _says(text: str, count: int) -> bool:
    try:
        settings = yaml.load(text, Loader=Loader)
    except yaml.YAMLError:
        return False
    return isinstance(settings, dict) and settings.get("workerCount") == count


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}:{mark.column + 1}" if mark else ""


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or error).replace("\n", " ")
