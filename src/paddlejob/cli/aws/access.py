"""`pdj aws kubeconfig`, `token`, `storage` and `policy`: what one needs to work with a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.aws.shared import HERE, AssetsDir, Format, Output, Profile, aws_of, dump, load, stack_of

if TYPE_CHECKING:
    from paddlejob.cloud.aws.assets import Assets
    from paddlejob.cloud.aws.session import Aws


def kubeconfig(assets: AssetsDir = HERE, profile: Profile = None) -> None:
    """Write ./kubeconfig, with which kubectl reaches the cluster.

    Example: pdj aws kubeconfig
    """
    from paddlejob.cloud.aws.cost import idle_line

    place, config = load(assets)
    write_kubeconfig(place, aws_of(config.region, profile), config.cluster_name)
    typer.echo(idle_line(config))


def write_kubeconfig(place: Assets, aws: Aws, name: str) -> None:
    from paddlejob.cloud.aws import kubeconfig as access

    access.write(place.kubeconfig, access.kubeconfig(aws, name))
    typer.echo(f"{place.kubeconfig} is written: kubectl --kubeconfig={place.kubeconfig} get nodes")


def token(
    cluster_name: Annotated[str, typer.Option(help="The cluster.")] = "",
    region: Annotated[str, typer.Option(help="Its region.")] = "",
    plain: Annotated[bool, typer.Option("--plain", help="The token alone.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Print a token for the cluster's API as kubectl wants it. Without options: of the cluster in this directory.

    Example: pdj aws token --cluster-name paddle-cluster --region us-west-2
    """
    from datetime import UTC, datetime

    from paddlejob.cloud.aws import tokens

    if not (cluster_name and region):
        _, config = load(assets)
        cluster_name, region = cluster_name or config.cluster_name, region or config.region
    made = tokens.token(aws_of(region, profile), cluster_name)
    typer.echo(made if plain else json.dumps(tokens.exec_credential(made, datetime.now(UTC))))


def storage(
    csi: Annotated[bool, typer.Option("--csi", help="Mount by the EFS add-on, encrypted on the wire.")] = False,
    output: Format = Output.text,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Write pv.yaml and pvc.yaml for the cluster's file system.

    Example: pdj aws storage --csi
    """
    from paddlejob.cloud.aws import storage as files
    from paddlejob.cloud.aws.assets import write
    from paddlejob.cloud.aws.cost import stored_line

    place, config = load(assets)
    name = files.file_system(stack_of(config, profile).find(), config.cluster_name)
    write(place.volume_yaml, dump(files.volume(name, config.region, csi), Output.yaml) + "\n")
    write(place.claim_yaml, dump(files.claim(), Output.yaml) + "\n")
    facts = files.facts(name, config.region)
    if output is not Output.text:
        typer.echo(dump({**facts, "files": [str(place.volume_yaml), str(place.claim_yaml)]}, output))
        return
    typer.echo("Volume and claim `efsvol` are written. To make them:")
    for path in (place.volume_yaml, place.claim_yaml):
        typer.echo(f"  kubectl --kubeconfig={place.kubeconfig} create -f {path}")
    typer.echo(f"To look at the files from a node:\n  {facts['mount']}\n{stored_line(config.region)}")


def policy(
    account_id: Annotated[str, typer.Option(help="The account; else AWS is asked.")] = "",
    s3_uri: Annotated[str, typer.Option(help="The same as for `up`, if you use it there.")] = "",
    output: Format = Output.json,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Print the least IAM policy that these commands need.

    Example: pdj aws policy --account-id 123456789012
    """
    from paddlejob.cloud.aws.cost import idle_line
    from paddlejob.cloud.aws.policy import policy as least

    _, config = load(assets)
    account = account_id or aws_of(config.region, profile).account()
    typer.echo(dump(least(config, account, s3_uri), Output.yaml if output is Output.yaml else Output.json))
    typer.echo(idle_line(config), err=True)
