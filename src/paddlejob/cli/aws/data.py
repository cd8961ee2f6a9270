"""`pdj aws data attach` and `detach`: the data of a cluster that somebody else created."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.aws.access import write_volumes
from paddlejob.cli.aws.confirm import confirmation
from paddlejob.cli.aws.destroy import Removal, remove
from paddlejob.cli.aws.shared import HERE, Profile, aws_of, interruptible, raise_if_any
from paddlejob.errors import BadInput

if TYPE_CHECKING:
    from paddlejob.cloud.aws.stack.stack import Stacks

Cluster = Annotated[str, typer.Option(help="Name of the EKS cluster.")]
Region = Annotated[str, typer.Option(envvar=["AWS_REGION", "AWS_DEFAULT_REGION"], help="Region of the cluster.")]
data_app = typer.Typer(
    help="Give an EKS cluster that exists already a file system and a bucket.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@data_app.command()
def attach(
    cluster: Cluster,
    region: Region = "",
    file_system_id: Annotated[str, typer.Option(help="An EFS of yours. Default: create one.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    assets: Annotated[Path, typer.Option(help="Directory for pv.yaml and pvc.yaml.")] = HERE,
    profile: Profile = None,
) -> None:
    """Create the data stack for a cluster, give its nodes and pods access, and write pv.yaml and pvc.yaml.

    Example: pdj aws data attach --cluster theirs --region us-west-2
    """
    from paddlejob.cloud.aws.config.assets import Assets
    from paddlejob.cloud.aws.stack import attach as attachment
    from paddlejob.cloud.aws.stack.apply import Options

    stacks = _stacks(cluster, region, profile, file_system_id)
    aws = stacks.data.aws
    with interruptible(stacks):
        outputs = attachment.attach(stacks, file_system_id, Options(confirm=confirmation(yes))).outputs
        missing = attachment.missing_addons(aws, cluster)
    files, bucket = outputs["FileSystemId"], outputs["BucketName"]
    typer.echo(f"Cluster {cluster} has access to file system {files} and bucket {bucket}.")
    for line in missing:
        typer.echo(line)
    write_volumes(Assets(assets), aws, files)


@data_app.command()
def detach(
    cluster: Cluster,
    region: Region = "",
    delete_data: Annotated[bool, typer.Option("--delete-data", help="Delete the file system and the bucket.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    profile: Profile = None,
) -> None:
    """Take the access of a cluster to its data away. The data is kept for the next `attach`, unless you delete it.

    Example: pdj aws data detach --cluster theirs --region us-west-2
    """
    options = f"--cluster {cluster} --region {region}"
    commands = (f"pdj aws data attach {options}", f"pdj aws data detach {options} --delete-data")
    remove(
        _stacks(cluster, region, profile),
        "",
        Removal(not delete_data, False, yes, False, "Attachment of data to cluster", *commands),
    )


def _stacks(cluster: str, region: str, profile: str | None, file_system: str = "") -> Stacks:
    from paddlejob.cloud.aws.checks import missing_file_system, unknown_region
    from paddlejob.cloud.aws.config.cluster import parse_config
    from paddlejob.cloud.aws.stack.attach import attached_stacks

    if not region:
        raise BadInput("--region is missing; name the region of the cluster, or set AWS_REGION")
    named = {"clusterName": cluster, "region": region, "availabilityZones": [f"{region}a"], "fileSystemId": file_system}
    config, aws = parse_config(named, "data"), aws_of(region, profile)
    raise_if_any(unknown_region(aws, config) or missing_file_system(aws, config))
    return attached_stacks(aws, cluster, lambda line: typer.echo(line, err=True))
