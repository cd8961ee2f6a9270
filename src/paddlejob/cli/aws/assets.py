"""`pdj aws init`, `render` and `validate`: the directory of assets, before anything is made."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from paddlejob.cli.aws.shared import HERE, AssetsDir, Format, Output, Profile, aws_of, dump, load, refuse


class Rendered(StrEnum):
    stack = "stack"
    credentials = "credentials"


def init(
    cluster_name: Annotated[str, typer.Option(help='Letters, digits and "-".')],
    region: Annotated[str, typer.Option(help="Such as us-west-2.")],
    availability_zone: Annotated[list[str], typer.Option(help="A zone for nodes; repeat it for more.")],
    external_dns_name: Annotated[str, typer.Option(help="A name for the private DNS zone.")] = "paddle",
    key_name: Annotated[str, typer.Option(help="An EC2 key pair, for ssh.")] = "",
    kms_key_arn: Annotated[str, typer.Option(help="An existing KMS key; else one is made.")] = "",
    workers: Annotated[int, typer.Option(help="How many nodes.")] = 1,
    instance_type: Annotated[str, typer.Option(help="Their type; for GPUs, such as g4dn.xlarge.")] = "m5.xlarge",
    spot: Annotated[bool, typer.Option("--spot", help="Spot nodes.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a cluster.yaml that is there.")] = False,
    assets: AssetsDir = HERE,
) -> None:
    """Write cluster.yaml. Nothing is made on AWS.

    \b
    Example: pdj aws init --cluster-name=paddle-cluster --region=us-west-2 --availability-zone=us-west-2a
    """
    from paddlejob.cloud.aws.assets import Assets
    from paddlejob.cloud.aws.config import read_config
    from paddlejob.cloud.aws.cost import idle_line

    settings: dict[str, Any] = {
        "clusterName": cluster_name,
        "region": region,
        "availabilityZones": availability_zone,
        "externalDNSName": external_dns_name,
        "keyName": key_name,
        "kmsKeyArn": kms_key_arn,
        "maxWorkerCount": max(10, workers),
        "workerCount": workers,
        "workerInstanceType": instance_type,
        "workerSpot": spot,
    }
    config = read_config(settings, "init")
    place = Assets(assets)
    place.init(config, replace)
    typer.echo(f"{place.cluster_yaml} is written: edit it, then `pdj aws validate` and `pdj aws up`")
    typer.echo(idle_line(config))


def render(
    what: Annotated[Rendered, typer.Argument(help="The stack; EKS makes the credentials.")] = Rendered.stack,
    generate_ca: Annotated[bool, typer.Option("--generate-ca", hidden=True)] = False,
    assets: AssetsDir = HERE,
) -> None:
    """Write stack.yaml, the CloudFormation template with the values of cluster.yaml. Asks AWS nothing.

    Example: pdj aws render stack
    """
    if what is Rendered.credentials or generate_ca:
        typer.echo("EKS makes the certificates of the cluster itself: nothing to render")
        return
    from paddlejob.cloud.aws import render as rendering
    from paddlejob.cloud.aws.assets import write
    from paddlejob.cloud.aws.cost import idle_line

    place, config = load(assets)
    values = rendering.parameters(config)
    write(place.stack_yaml, rendering.template(values))
    typer.echo(f"{place.stack_yaml} is written")
    if len(config.availability_zones) == 1:
        typer.echo(f"the control plane's second zone is taken to be {values['Zone2']}; `up` asks AWS for it")
    typer.echo(idle_line(config))


def validate(
    job: Annotated[list[str] | None, typer.Option(help="A job's YAML that is to run there; repeatable.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask AWS.")] = False,
    output: Format = Output.text,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Find what CloudFormation would find late. All faults are listed at once.

    Example: pdj aws validate --job paddle-cluster-job.yaml
    """
    from paddlejob.cli.files import objects_in
    from paddlejob.cloud.aws import checks, cost
    from paddlejob.cloud.aws.hostports import node_faults

    place, config = load(assets)
    aws = aws_of(config.region, profile)
    faults = checks.offline_faults(aws, config) if offline else checks.faults(aws, config)
    documents = [document for name in job or [] for document in objects_in(name)]
    refuse([f"{place.cluster_yaml}: {fault}" for fault in faults] + node_faults(documents, config.worker_count))
    if output is not Output.text:
        typer.echo(dump({"clusterName": config.cluster_name, "valid": True, "idleCost": cost.facts(config)}, output))
        return
    typer.echo(f"{place.cluster_yaml} is fine" + (" as far as can be told without asking AWS" if offline else ""))
    typer.echo("\n".join(cost.table(cost.idle_items(config))))
    typer.echo(cost.idle_line(config))
