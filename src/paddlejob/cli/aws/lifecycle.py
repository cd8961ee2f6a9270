"""`pdj aws up`, `status`, `scale` and `upgrade`: the life of a cluster until it is destroyed."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from paddlejob.cli.aws.access import write_kubeconfig
from paddlejob.cli.aws.confirm import confirmation
from paddlejob.cli.aws.shared import (
    HERE,
    AssetsDir,
    Format,
    Output,
    Profile,
    dump,
    interruptible,
    load,
    raise_if_any,
    stacks_of,
)
from paddlejob.errors import BadInput, NotPossible


def up(
    s3_uri: Annotated[str, typer.Option(help="Upload the template to s3://BUCKET/PREFIX first.")] = "",
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Delete everything again if the creation fails.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Create the cluster, or update it to match cluster.yaml. After a failure, run it again to resume.

    Example: pdj aws up
    """
    from paddlejob.cloud.aws import checks, cost
    from paddlejob.cloud.aws.config import instances
    from paddlejob.cloud.aws.config.assets import write
    from paddlejob.cloud.aws.prices import prices
    from paddlejob.cloud.aws.stack import publish
    from paddlejob.cloud.aws.stack.apply import Options
    from paddlejob.cloud.aws.stack.up import up as bring_up
    from paddlejob.cloud.aws.templates.compose import Template

    files, config = load(assets)
    stacks = stacks_of(config, profile)
    aws = stacks.cluster.aws
    if s3_uri:
        publish.template_location(s3_uri, config.cluster_name, "stack.yaml")  # a bad URI fails before any request

    def send(template: Template) -> dict[str, str]:
        write(files.directory / template.file, template.text)
        return publish.to_s3(aws, s3_uri, config.cluster_name, template) if s3_uri else {"TemplateBody": template.text}

    with interruptible(stacks):
        raise_if_any([f"{files.cluster_yaml}: {problem}" for problem in checks.problems(aws, config)])
        typer.echo(cost.idle_line(config, prices(aws, config)), err=True)
        _, changed = bring_up(stacks, config, Options(send, confirmation(yes), rollback))
    typer.echo(f"Cluster {config.cluster_name} is up." + ("" if changed else " No changes needed."))
    write_kubeconfig(files, aws, config.cluster_name)
    if instances.has_gpu(config.worker_instance_type):
        typer.echo(
            "To use nvidia.com/gpu in jobs, install NVIDIA's device plugin on the cluster; see docs/tutorial/aws.md."
        )


def status(output: Format = Output.text, assets: AssetsDir = HERE, profile: Profile = None) -> None:
    """Show the cluster, its endpoint and its nodes.

    Example: pdj aws status -o json
    """
    from paddlejob.cloud.aws import cost
    from paddlejob.cloud.aws.prices import prices
    from paddlejob.cloud.aws.stack.status import status as look
    from paddlejob.cloud.aws.templates.render import as_deployed

    _, config = load(assets)
    stacks = stacks_of(config, profile)
    state = stacks.cluster.find()
    if state is None:
        raise NotPossible(f"cluster {config.cluster_name} does not exist in {config.region}; run `pdj aws up`")
    found = look(stacks.cluster.aws, state, stacks.outputs())
    deployed = as_deployed(config, state.parameters)
    found_prices = prices(stacks.cluster.aws, deployed)
    if output is Output.text:
        typer.echo("\n".join([*found.lines(), cost.idle_line(deployed, found_prices)]))
    else:
        typer.echo(dump({**found.as_dict(), "idleCost": cost.facts(deployed, found_prices)}, output))


def scale(
    workers: Annotated[int, typer.Argument(help="Number of nodes.")],
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Change the number of nodes, in the cluster and in cluster.yaml.

    Example: pdj aws scale 3
    """
    from paddlejob.cloud.aws.config.assets import write
    from paddlejob.cloud.aws.cost import idle_line
    from paddlejob.cloud.aws.prices import prices
    from paddlejob.cloud.aws.stack.up import scale as change
    from paddlejob.cloud.aws.templates.render import as_deployed

    files, config = load(assets)
    text = files.with_setting("workerCount", workers)
    stacks = stacks_of(config, profile)
    with interruptible(stacks):
        state, _ = change(stacks.cluster, workers, accepted=lambda: write(files.cluster_yaml, text))
    typer.echo(
        f"Asked for {workers} nodes of {config.cluster_name}. New nodes are Ready after a few minutes; `kubectl get "
        "nodes` shows them."
    )
    deployed = as_deployed(config, state.parameters)
    typer.echo(idle_line(deployed, prices(stacks.cluster.aws, deployed)))


def upgrade(
    to: Annotated[str, typer.Option(help="Kubernetes version. Default: the current one.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Upgrade the control plane, the add-ons and the image of the nodes. Replaces the nodes in turn.

    Example: pdj aws upgrade --to 1.36
    """
    from paddlejob.cloud.aws.config.assets import write
    from paddlejob.cloud.aws.config.cluster import VERSION
    from paddlejob.cloud.aws.stack.upgrade import upgrade as change

    files, config = load(assets)
    text = files.with_setting("kubernetesVersion", to) if to else ""
    if to and not re.fullmatch(VERSION, to):
        raise BadInput(f"--to: {to!r} is not a Kubernetes version; use one such as 1.36")
    stacks = stacks_of(config, profile)

    def accepted(version: str) -> None:
        if version:
            write(files.cluster_yaml, text)

    with interruptible(stacks):
        _, version, changed = change(stacks.cluster, to, confirmation(yes), accepted)
    typer.echo(f"Cluster {config.cluster_name} runs Kubernetes {version}." + ("" if changed else " No changes needed."))
