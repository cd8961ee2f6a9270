"""`pdj aws up`, `status`, `scale` and `destroy`: the life of a cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.aws.access import write_kubeconfig
from paddlejob.cli.aws.shared import (
    HERE,
    AssetsDir,
    Format,
    Output,
    Profile,
    dump,
    interruptible,
    load,
    refuse,
    stack_of,
)
from paddlejob.errors import BadInput, NotPossible

if TYPE_CHECKING:
    from paddlejob.cloud.aws.destroy import Survey


def up(
    s3_uri: Annotated[str, typer.Option(help="s3://BUCKET/PREFIX: where the template is put first.")] = "",
    rollback: Annotated[bool, typer.Option("--rollback", help="Undo everything if the creation fails.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Make the cluster, or bring it to what cluster.yaml says. Run it again, and it goes on.

    Example: pdj aws up
    """
    from paddlejob.cloud.aws import checks, cost, instances, publish
    from paddlejob.cloud.aws.assets import write
    from paddlejob.cloud.aws.up import as_text
    from paddlejob.cloud.aws.up import up as bring_up

    place, config = load(assets)
    stack = stack_of(config, profile)
    if s3_uri:
        publish.place(s3_uri, config.cluster_name)  # refused before AWS is asked anything
    typer.echo(cost.idle_line(config), err=True)

    def send(template: str) -> dict[str, str]:
        write(place.stack_yaml, template)
        return publish.to_s3(stack.aws, s3_uri, config.cluster_name, template) if s3_uri else as_text(template)

    with interruptible(stack):
        refuse([f"{place.cluster_yaml}: {fault}" for fault in checks.faults(stack.aws, config)])
        _, changed = bring_up(stack, config, send, rollback)
    typer.echo(f"cluster {config.cluster_name} is up" + ("" if changed else "; nothing was to be changed"))
    write_kubeconfig(place, stack.aws, config.cluster_name)
    if instances.has_gpu(config.worker_instance_type):
        typer.echo("For nvidia.com/gpu in a job, install NVIDIA's device plugin on the cluster (docs/tutorial/aws.md)")


def status(output: Format = Output.text, assets: AssetsDir = HERE, profile: Profile = None) -> None:
    """Show the cluster, its address and its nodes.

    Example: pdj aws status -o json
    """
    from paddlejob.cloud.aws import cost
    from paddlejob.cloud.aws.render import as_deployed
    from paddlejob.cloud.aws.status import status as look

    _, config = load(assets)
    stack = stack_of(config, profile)
    state = stack.find()
    if state is None:
        raise NotPossible(f"there is no cluster {config.cluster_name} in {config.region}; run `pdj aws up`")
    found = look(stack.aws, state)
    deployed = as_deployed(config, state.parameters)
    if output is Output.text:
        typer.echo("\n".join([*found.lines(), cost.idle_line(deployed)]))
    else:
        typer.echo(dump({**found.as_dict(), "idleCost": cost.facts(deployed)}, output))


def scale(
    workers: Annotated[int, typer.Argument(help="How many nodes.")],
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Change the number of nodes, there and in cluster.yaml.

    Example: pdj aws scale 3
    """
    from paddlejob.cloud.aws.assets import write
    from paddlejob.cloud.aws.cost import idle_line
    from paddlejob.cloud.aws.render import as_deployed
    from paddlejob.cloud.aws.up import scale as change

    place, config = load(assets)
    text = place.with_worker_count(workers)
    stack = stack_of(config, profile)
    with interruptible(stack):
        state, _ = change(stack, workers, accepted=lambda: write(place.cluster_yaml, text))
    typer.echo(f"cluster {config.cluster_name} has {workers} nodes")
    typer.echo(idle_line(as_deployed(config, state.parameters)))


def destroy(
    keep_data: Annotated[bool, typer.Option("--keep-data", help="Leave the file system and the bucket.")] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return at once.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Try although something is in the way.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Delete the cluster. Asks before data is lost.

    Example: pdj aws destroy --keep-data
    """
    from paddlejob.cloud.aws import destroy as removal

    _, config = load(assets)
    stack = stack_of(config, profile)
    with interruptible(stack):
        found = removal.survey(stack)
        if found is None:
            typer.echo(f"there is no cluster {config.cluster_name} in {config.region}: nothing to destroy")
            return
        if found.blockers and not force:
            _in_the_way(found.blockers)
        if found.holdings and not (keep_data or yes or found.begun):
            _ask_before_loss(config.cluster_name, found.holdings)
        kept = removal.destroy(stack, found.state, keep_data, wait=not no_wait)
    typer.echo(f"cluster {config.cluster_name} is " + ("being deleted" if no_wait else "deleted"))
    typer.echo("\n".join(_what_it_costs_now(found, kept, config.region, no_wait)))


def _what_it_costs_now(found: Survey, kept: bool, region: str, no_wait: bool) -> list[str]:
    from paddlejob.cloud.aws.cost import kept_line

    lines = ["It costs until it is gone; `pdj aws status` shows how far that is"] if no_wait else []
    if kept and found.holdings:
        return [*lines, "kept: " + ", ".join(found.holdings), kept_line(found.file_system, region)]
    return lines or ["Nothing of it costs anything any more"]


def _in_the_way(blockers: list[str]) -> None:
    named = "\n".join(f"  {blocker}" for blocker in blockers)
    raise NotPossible(f"the cluster cannot be deleted while these are there (or use --force):\n{named}")


def _ask_before_loss(name: str, holdings: list[str]) -> None:
    lost = " and ".join(holdings)
    if not _at_a_terminal():
        raise BadInput(f"{lost} would be lost; use --keep-data, or --yes to delete it without being asked")
    typer.echo(f"This deletes {lost} for good. --keep-data would leave it.")
    try:
        answer = typer.prompt(f"Type {name} to go on", default="", show_default=False)
    except typer.Abort:  # Ctrl-C, or the end of the input
        answer = ""
    if answer != name:
        raise BadInput("nothing was deleted")


def _at_a_terminal() -> bool:
    return sys.stdin.isatty()
