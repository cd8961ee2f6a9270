"""`pdj aws init`, `render` and `validate`: the assets directory, before anything is created on AWS."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from paddlejob.cloud.aws.config.assets import Assets
    from paddlejob.cloud.aws.config.cluster import ClusterConfig


class Rendered(StrEnum):
    stack = "stack"
    credentials = "credentials"


class TemplateFormat(StrEnum):
    cloudformation = "cloudformation"
    eksctl = "eksctl"


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
    auto_mode: Annotated[bool, typer.Option("--auto-mode", help="Let EKS create nodes as pods need them.")] = False,
    my_address: Annotated[
        str, typer.Option(envvar="PDJ_MY_ADDRESS", help="Your public IPv4 address; only it can reach the API.")
    ] = "",
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
        "kmsKeyArn": kms_key_arn,
        **({"apiAccessCIDRs": [f"{my_address}/32"]} if my_address else {}),
    }
    nodes = {
        "keyName": key_name,
        "maxWorkerCount": max(10, workers),
        "workerCount": workers,
        "workerInstanceType": instance_type,
        "workerSpot": spot,
    }
    config = parse_config(settings | ({"autoMode": True} if auto_mode else nodes), "init")
    files = Assets(assets)
    files.init(config, replace)
    typer.echo(f"Wrote {files.cluster_yaml}. Edit it, then run `pdj aws validate` and `pdj aws up`.")
    if not my_address:
        typer.echo(
            "With valid credentials, the Kubernetes API can be reached from everywhere. To allow only your address, "
            "set apiAccessCIDRs: [ADDRESS/32], or use --my-address; `curl https://checkip.amazonaws.com` prints it."
        )


def render(
    what: Annotated[
        Rendered, typer.Argument(help="What to render. EKS creates the credentials itself.")
    ] = Rendered.stack,
    format: Annotated[TemplateFormat, typer.Option(help="The tool that creates the cluster.")] = (
        TemplateFormat.cloudformation
    ),
    generate_ca: Annotated[bool, typer.Option("--generate-ca", hidden=True)] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Send no requests to AWS.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Write the CloudFormation templates that `up` sends, stack.yaml and data-stack.yaml, or eksctl.yaml.

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
    without = "--offline" if offline else "" if stacks.cluster.aws.has_credentials() else "no AWS credentials"
    if without:
        values, data = rendering.parameters(config), {}
    else:
        values, data = resolve_parameters(stacks.cluster.aws, config, stacks.cluster.find()), stacks.outputs()
    if without:
        _say_guesses(without, config, values["Zone2"], format)
    if format is TemplateFormat.eksctl:
        _write_eksctl(files, config, values)
        return
    for template in (
        rendering.cluster_template(config, values | rendering.from_data(data)),
        rendering.data_template(config.cluster_name, config.file_system_id, values["BoundaryArn"]),
    ):
        write(files.directory / template.file, template.text)
        typer.echo(f"Wrote {files.directory / template.file}.")
    if not data:
        typer.echo(f"`up` adds {' and '.join(rendering.FROM_DATA)}, which the data stack provides.")


def _say_guesses(without: str, config: ClusterConfig, zone: str, format: TemplateFormat) -> None:
    guesses = [f"{zone} as the second zone"] if len(config.availability_zones) == 1 else []
    if format is TemplateFormat.cloudformation and not config.administrator_arn:
        guesses.append("no administrator")
    typer.echo(f"AWS was not asked ({without}){': assuming ' if guesses else ''}{' and '.join(guesses)}.")


def _write_eksctl(files: Assets, config: ClusterConfig, values: dict[str, str]) -> None:
    from paddlejob.cloud.aws.access.boundary import partition
    from paddlejob.cloud.aws.config.assets import write
    from paddlejob.cloud.aws.templates.eksctl import eksctl_config

    path = files.directory / "eksctl.yaml"
    write(path, dump(eksctl_config(config, values, partition(config.region)), Output.yaml) + "\n")
    options = f"--cluster {config.cluster_name} --region {config.region}"
    typer.echo(f"Wrote {path}. Create the cluster, then its file system and bucket:\n  eksctl create cluster -f {path}")
    typer.echo(f"  pdj aws data attach {options}")


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
    from paddlejob.api.checks.host_ports import node_problems
    from paddlejob.client.files import objects_in
    from paddlejob.cloud.aws import checks, cost
    from paddlejob.cloud.aws.prices import offline as no_prices
    from paddlejob.cloud.aws.prices import prices

    files, config = load(assets)
    aws = aws_of(config.region, profile)
    problems = checks.offline_problems(aws, config) if offline else checks.problems(aws, config)
    documents = [document for name in job or [] for document in objects_in(name)]
    raise_if_any(
        [f"{files.cluster_yaml}: {problem}" for problem in problems] + node_problems(documents, config.worker_count)
    )
    found = no_prices() if offline else prices(aws, config)
    if output is not Output.text:
        estimate = cost.facts(config, found)
        typer.echo(dump({"clusterName": config.cluster_name, "valid": True, "idleCost": estimate}, output))
        return
    typer.echo(
        f"{files.cluster_yaml} is valid" + (" (checked offline; run without --offline to ask AWS)" if offline else "")
    )
    if not found.problem:
        typer.echo("\n".join(cost.table(cost.idle_items(config, found))))
    typer.echo(cost.idle_line(config, found))
