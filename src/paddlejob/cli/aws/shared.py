"""What the verbs of `pdj aws` share: options, the way to the stack, and how a stop by Ctrl-C is told."""

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
    from paddlejob.cloud.aws.assets import Assets
    from paddlejob.cloud.aws.config import ClusterConfig
    from paddlejob.cloud.aws.session import Aws
    from paddlejob.cloud.aws.stack import Stack


class Output(StrEnum):
    text = "text"
    json = "json"
    yaml = "yaml"


AssetsDir = Annotated[Path, typer.Option("--assets", help="The directory with cluster.yaml.")]
Profile = Annotated[str | None, typer.Option(help="A profile of the AWS configuration.", envvar="AWS_PROFILE")]
Format = Annotated[Output, typer.Option("--output", "-o", help="How to print it.")]
HERE = Path()


def load(directory: Path) -> tuple[Assets, ClusterConfig]:
    from paddlejob.cloud.aws.assets import Assets

    place = Assets(directory)
    return place, place.load()


def aws_of(region: str, profile: str | None) -> Aws:
    from paddlejob.cloud.aws.session import Aws

    return Aws(region, profile)


def stack_of(config: ClusterConfig, profile: str | None) -> Stack:
    from paddlejob.cloud.aws.stack import Stack

    return Stack(aws_of(config.region, profile), config.cluster_name, say=lambda line: typer.echo(line, err=True))


def refuse(faults: list[str]) -> None:
    if faults:
        raise BadInput("\n".join(faults))


def dump(value: Any, output: Output) -> str:
    import yaml

    if output is Output.json:
        return json.dumps(value, indent=2)
    return yaml.safe_dump(value, sort_keys=False).rstrip("\n")


@contextmanager
def interruptible(stack: Stack) -> Iterator[None]:
    """Ctrl-C ends the watching, not what CloudFormation does."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\n{_what_goes_on(stack)}", err=True)
        raise typer.Exit(130) from None


def _what_goes_on(stack: Stack) -> str:
    if stack.at_work:
        return f"CloudFormation goes on with {stack.name}; run the same command again to follow it"
    return f"stopped; CloudFormation is not at work on {stack.name}: run the same command again to go on"
