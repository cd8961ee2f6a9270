"""`pdj aws init`, `render` and `validate`: the assets directory, before anything is created on AWS."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from paddlejob.cli.aws.shared import (
    HERE,
    AssetsDir,
    Format,
    Output,
    Profile,
    aws_of,
    dump,
    load,
    raise_if_any,
    stacks_of,
)


class Rendered(StrEnum):
    stack = "stack"
    credentials = "credentials"


def init(
    cluster_name: Annotated[str, typer.Option(help='Name of the cluster: letters, digits and "-".')],
    region: Annotated[str, typer.Option(help="AWS region, such as us-west-2.")],
    availability_zone: Annotated[list[str], typer.Option(help="Availability zone for nodes; repeatable.")],
    external_dns_name: Annotated[str, typer.Option(help="Name of a private DNS zone. Default: no zone.")] = "",
    key_name: Annotated[str, typer.Option(help="EC2 key pair for SSH.")] = "",
    kms_key_arn: Annotated[str, typer.Option(help="KMS key for secrets. Default: create one.")] = "",
    workers: Annotated[int, typer.Option(help="Number of nodes.")] = 1,
    instance_type: Annotated[str, typer.Option(help="Instance type; for GPUs, such as g4dn.xlarge.")] = "m5.xlarge",
    spot: Annotated[bool, typer.Option("--spot", help="Use spot instances.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing cluster.yaml.")] = False,
    assets: AssetsDir = HERE,
) -> None:
    """Write cluster.yaml. Creates nothing on AWS.

    \b
    Example: pdj aws init --cluster-name=paddle-cluster --region=us-west-2 --availability-zone=us-west-2a
    """
    from paddlejob.cloud.aws.config.assets import Assets
    from paddlejob.cloud.aws.config.cluster import parse_config

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
    config = parse_config(settings, "init")
    files = Assets(assets)
    files.init(config, replace)
    typer.echo(f"Wrote {files.cluster_yaml}. Edit it, then run `pdj aws validate` and `pdj aws up`.")


def render(
    what: Annotated[
        Rendered, typer.Argument(help="What to render. EKS creates the credentials itself.")
    ] = Rendered.stack,
    generate_ca: Annotated[bool, typer.Option("--generate-ca", hidden=True)] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Send no requests to AWS.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Write the CloudFormation templates that `up` sends: stack.yaml and data-stack.yaml.

    Example: pdj aws render stack
    """
    if what is Rendered.credentials or generate_ca:
        typer.echo("Nothing to render: EKS creates the certificates of the cluster.")
        return
    from paddlejob.cloud.aws.config.assets import write
    from paddlejob.cloud.aws.stack.up import resolve_parameters
    from paddlejob.cloud.aws.templates import render as rendering

    files, config = load(assets)
    stacks = stacks_of(config, profile)
    if offline or not stacks.cluster.aws.has_credentials():
        offline = True
        values, data = rendering.parameters(config), {}
    else:
        values, data = resolve_parameters(stacks.cluster.aws, config, stacks.cluster.find()), stacks.outputs()
    for template in (
        rendering.cluster_template(config, values | rendering.from_data(data)),
        rendering.data_template(config.cluster_name, config.file_system_id, values["BoundaryArn"]),
    ):
        write(files.directory / template.file, template.text)
        typer.echo(f"Wrote {files.directory / template.file}.")
    if not data:
        typer.echo(f"`up` adds {' and '.join(rendering.FROM_DATA)}, which the data stack provides.")
    if offline:
        typer.echo(f"Assuming {values['Zone2']} as the second zone and no administrator; `up` asks AWS.")


def validate(
    job: Annotated[list[str] | None, typer.Option(help="Job file to check against the cluster; repeatable.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Send no requests to AWS.")] = False,
    output: Format = Output.text,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Check cluster.yaml before `up`. Reports all problems at once.

    Example: pdj aws validate --job paddle-cluster-job.yaml
    """
    from paddlejob.client.files import objects_in
    from paddlejob.cloud.aws import checks, cost
    from paddlejob.cloud.aws.host_ports import node_problems
    from paddlejob.cloud.aws.prices import node_price

    files, config = load(assets)
    aws = aws_of(config.region, profile)
    problems = checks.offline_problems(aws, config) if offline else checks.problems(aws, config)
    documents = [document for name in job or [] for document in objects_in(name)]
    raise_if_any(
        [f"{files.cluster_yaml}: {problem}" for problem in problems] + node_problems(documents, config.worker_count)
    )
    price = None if offline else node_price(aws, config)
    if output is not Output.text:
        estimate = cost.facts(config, price)
        typer.echo(dump({"clusterName": config.cluster_name, "valid": True, "idleCost": estimate}, output))
        return
    typer.echo(
        f"{files.cluster_yaml} is valid" + (" (checked offline; run without --offline to ask AWS)" if offline else "")
    )
    typer.echo("\n".join(cost.table(cost.idle_items(config, price))))
    typer.echo(cost.idle_line(config, price))
