"""`pdj aws kubeconfig`, `token`, `storage` and `policy`: what a user needs to work with a cluster."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.aws.shared import HERE, AssetsDir, Format, Output, Profile, aws_of, dump, load, stacks_of
from paddlejob.errors import BadInput

if TYPE_CHECKING:
    from paddlejob.cloud.aws.config.assets import Assets
    from paddlejob.cloud.aws.session import Aws


def kubeconfig(assets: AssetsDir = HERE, profile: Profile = None) -> None:
    """Write the kubeconfig of the cluster.

    Example: pdj aws kubeconfig
    """

    files, config = load(assets)
    write_kubeconfig(files, aws_of(config.region, profile), config.cluster_name)


def write_kubeconfig(files: Assets, aws: Aws, name: str) -> None:
    from paddlejob.cloud.aws.access import kubeconfig as access

    access.write(files.kubeconfig, access.kubeconfig(aws, name))
    typer.echo(f"Wrote {files.kubeconfig}. Try: kubectl --kubeconfig={files.kubeconfig} get nodes")


def token(
    cluster_name: Annotated[str, typer.Option(help="Name of the cluster. Default: from cluster.yaml.")] = "",
    region: Annotated[str, typer.Option(help="Region of the cluster. Default: from cluster.yaml.")] = "",
    plain: Annotated[bool, typer.Option("--plain", help="Print only the token.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Print a token for the Kubernetes API as an ExecCredential. kubectl runs this command.

    Example: pdj aws token --cluster-name paddle-cluster --region us-west-2
    """
    from datetime import UTC, datetime

    from paddlejob.cloud.aws.access import tokens

    if not (cluster_name and region):
        _, config = load(assets)
        cluster_name, region = cluster_name or config.cluster_name, region or config.region
    made = tokens.token(aws_of(region, profile), cluster_name)
    typer.echo(made if plain else json.dumps(tokens.exec_credential(made, datetime.now(UTC))))


def storage(
    nfs: Annotated[bool, typer.Option("--nfs", help="Mount with the node's NFS client, unencrypted.")] = False,
    csi: Annotated[bool, typer.Option("--csi", hidden=True, help="The default.")] = False,
    output: Format = Output.text,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Write pv.yaml and pvc.yaml for the shared file system of the cluster.

    Example: pdj aws storage
    """
    from paddlejob.cloud.aws.access.storage import file_system

    if nfs and csi:
        raise BadInput("--nfs and --csi exclude each other; omit --csi, which is the default")
    files, config = load(assets)
    if nfs and not config.file_system_id:
        raise BadInput("--nfs: the file system that `up` created accepts encrypted mounts only; omit --nfs")
    stacks = stacks_of(config, profile)
    write_volumes(files, stacks.data.aws, file_system(stacks.outputs(), config.cluster_name), nfs, output)


def write_volumes(files: Assets, aws: Aws, name: str, nfs: bool = False, output: Output = Output.text) -> None:
    """Write pv.yaml and pvc.yaml for a file system, and say how they are used."""
    from paddlejob.cloud.aws.access import storage as volumes
    from paddlejob.cloud.aws.config.assets import write
    from paddlejob.cloud.aws.cost import stored_line
    from paddlejob.cloud.aws.prices import prices

    paths = [files.directory / "pv.yaml", files.directory / "pvc.yaml"]
    for path, manifest in zip(paths, (volumes.volume(name, aws.region, nfs), volumes.claim()), strict=True):
        write(path, dump(manifest, Output.yaml) + "\n")
    summary = volumes.summary(name, aws.region)
    if output is not Output.text:
        typer.echo(dump({**summary, "files": [str(path) for path in paths]}, output))
        return
    typer.echo(f"Wrote {paths[0]} and {paths[1]}. Create the volume and the claim `efsvol` with:")
    use = f" --kubeconfig={files.kubeconfig}" if files.kubeconfig.exists() else ""
    for path in paths:
        typer.echo(f"  kubectl{use} create -f {path}")
    typer.echo(f"To browse the files from a node, run there:\n  {summary['mount']}\n{stored_line(prices(aws))}")


def policy(
    account_id: Annotated[str, typer.Option(help="AWS account id. Default: ask AWS.")] = "",
    s3_uri: Annotated[str, typer.Option(help="The --s3-uri that you pass to `up`, if any.")] = "",
    boundary: Annotated[bool, typer.Option("--boundary", help="Print the boundary of the cluster's roles.")] = False,
    output: Format = Output.json,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Print the least-privilege IAM policy for these commands, or the permissions boundary that it requires.

    An administrator creates the boundary as the managed policy NAME-boundary; `up` gives it to every role.

    Example: pdj aws policy --account-id 123456789012
    """
    from paddlejob.cloud.aws.access.boundary import boundary as boundary_of
    from paddlejob.cloud.aws.access.policy import MAX_SIZE, size
    from paddlejob.cloud.aws.access.policy import policy as least_privilege

    _, config = load(assets)
    form = Output.yaml if output is Output.yaml else Output.json
    if boundary:
        typer.echo(dump(boundary_of(config), form))
        return
    if account_id and not re.fullmatch(r"\d{12}", account_id):
        raise BadInput(f"--account-id: {account_id!r} is not an AWS account id; use its 12 digits")
    aws = aws_of(config.region, profile)
    if not (account_id or aws.has_credentials()):
        raise BadInput("--account-id is missing, and there are no credentials to ask AWS with; pass the 12 digits")
    account = account_id or aws.account()
    document = least_privilege(config, account, s3_uri)
    typer.echo(dump(document, form))
    if size(document) > MAX_SIZE:
        typer.echo(
            f"This policy has {size(document)} characters, and IAM allows {MAX_SIZE}; use a shorter clusterName, or "
            "create two policies, each with half of the statements.",
            err=True,
        )
