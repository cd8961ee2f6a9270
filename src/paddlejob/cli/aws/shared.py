"""What the verbs of `pdj aws` share: options, access to the stack, and the handling of Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlejob.errors import BadInput

if TYPE_CHECKING:
    from paddlejob.cloud.aws.config.assets import Assets
    from paddlejob.cloud.aws.config.cluster import ClusterConfig
    from paddlejob.cloud.aws.session import Aws
    from paddlejob.cloud.aws.stack.stack import Stacks


class Output(StrEnum):
    text = "text"
    json = "json"
    yaml = "yaml"


AssetsDir = Annotated[Path, typer.Option("--assets", help="Directory with cluster.yaml.")]
# Without envvar=AWS_PROFILE: botocore reads it itself and, as the AWS CLI does, prefers keys in the environment to it.
Profile = Annotated[str | None, typer.Option(help="AWS profile to use.")]
Format = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]
HERE = Path()


def load(directory: Path) -> tuple[Assets, ClusterConfig]:
    from paddlejob.cloud.aws.config.assets import Assets

    files = Assets(directory)
    return files, files.load()


def aws_of(region: str, profile: str | None) -> Aws:
    from paddlejob.cloud.aws.session import Aws

    return Aws(region, profile)


def stacks_of(config: ClusterConfig, profile: str | None) -> Stacks:
    from paddlejob.cloud.aws.stack.stack import Stacks

    return Stacks.of(aws_of(config.region, profile), config.cluster_name, say=lambda line: typer.echo(line, err=True))


def raise_if_any(problems: list[str]) -> None:
    if problems:
        raise BadInput("\n".join(problems))


def dump(value: Any, output: Output) -> str:
    import yaml

    if output is Output.json:
        return json.dumps(value, indent=2)
    return yaml.safe_dump(value, sort_keys=False).rstrip("\n")


@contextmanager
def interruptible(stacks: Stacks) -> Iterator[None]:
    """On Ctrl-C, say whether CloudFormation continues, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\n{_describe_interruption(stacks)}", err=True)
        raise typer.Exit(130) from None


def _describe_interruption(stacks: Stacks) -> str:
    if stacks.running:
        return f"CloudFormation continues with {stacks.running.name}; run the same command again to follow it"
    name = stacks.cluster.name
    return f"Interrupted; no CloudFormation operation is running on {name}. Run the same command again to resume."
