"""`pdj aws up`, `status`, `scale` and `destroy`: the lifecycle of a cluster."""

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
    raise_if_any,
    stacks_of,
)
from paddlejob.errors import BadInput, NotPossible

if TYPE_CHECKING:
    from paddlejob.cloud.aws.config.cluster import ClusterConfig
    from paddlejob.cloud.aws.stack.changes import Change, Confirm


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
    from paddlejob.cloud.aws.prices import node_price
    from paddlejob.cloud.aws.stack import publish
    from paddlejob.cloud.aws.stack.up import Options, inline_template
    from paddlejob.cloud.aws.stack.up import up as bring_up

    files, config = load(assets)
    stacks = stacks_of(config, profile)
    if s3_uri:
        publish.template_location(s3_uri, config.cluster_name, "stack.yaml")  # a bad URI fails before any request
    typer.echo(cost.idle_line(config, node_price(stacks.cluster.aws, config)), err=True)

    aws = stacks.cluster.aws

    def send(file: str, template: str) -> dict[str, str]:
        write(files.directory / file, template)
        return (
            publish.to_s3(aws, s3_uri, config.cluster_name, file, template)
            if s3_uri
            else inline_template(file, template)
        )

    with interruptible(stacks):
        raise_if_any([f"{files.cluster_yaml}: {problem}" for problem in checks.problems(aws, config)])
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
    from paddlejob.cloud.aws.prices import node_price
    from paddlejob.cloud.aws.stack.render import as_deployed
    from paddlejob.cloud.aws.stack.status import status as look

    _, config = load(assets)
    stacks = stacks_of(config, profile)
    state = stacks.cluster.find()
    if state is None:
        raise NotPossible(f"cluster {config.cluster_name} does not exist in {config.region}; run `pdj aws up`")
    found = look(stacks.cluster.aws, state, stacks.outputs())
    deployed = as_deployed(config, state.parameters)
    price = node_price(stacks.cluster.aws, deployed)
    if output is Output.text:
        typer.echo("\n".join([*found.lines(), cost.idle_line(deployed, price)]))
    else:
        typer.echo(dump({**found.as_dict(), "idleCost": cost.facts(deployed, price)}, output))


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
    from paddlejob.cloud.aws.prices import node_price
    from paddlejob.cloud.aws.stack.render import as_deployed
    from paddlejob.cloud.aws.stack.up import scale as change

    files, config = load(assets)
    text = files.with_setting("workerCount", workers)
    stacks = stacks_of(config, profile)
    with interruptible(stacks):
        state, _ = change(stacks.cluster, workers, accepted=lambda: write(files.cluster_yaml, text))
    typer.echo(f"Cluster {config.cluster_name} scaled to {workers} nodes, which take a few minutes to be Ready.")
    deployed = as_deployed(config, state.parameters)
    typer.echo(idle_line(deployed, node_price(stacks.cluster.aws, deployed)))


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
    if to and not VERSION.fullmatch(to):
        raise BadInput(f"--to: {to!r} is not a Kubernetes version; use one such as 1.36")
    stacks = stacks_of(config, profile)

    def accepted(version: str) -> None:
        if version:
            write(files.cluster_yaml, text)

    with interruptible(stacks):
        _, version, changed = change(stacks.cluster, to, confirmation(yes), accepted)
    typer.echo(f"Cluster {config.cluster_name} runs Kubernetes {version}." + ("" if changed else " No changes needed."))


def destroy(
    keep_data: Annotated[bool, typer.Option("--keep-data", help="Keep the file system and the bucket.")] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return without waiting for the deletion.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Try even if other resources block the deletion.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Delete the cluster. Asks for confirmation before data is lost.

    Example: pdj aws destroy --keep-data
    """
    from paddlejob.cloud.aws.stack import destroy as removal

    _, config = load(assets)
    stacks = stacks_of(config, profile)
    with interruptible(stacks):
        found = removal.preflight(stacks)
        if found.cluster is None and (keep_data or found.data is None):
            typer.echo(f"Nothing to destroy: cluster {config.cluster_name} does not exist in {config.region}.")
            typer.echo("\n".join(_still_billed(found.stored_data, config, keep_data)), nl=bool(found.stored_data))
            return
        if found.blockers and not force:
            _raise_blocked(found.blockers)
        if found.stored_data and not (keep_data or yes or found.data_deletion_started):
            _confirm_data_loss(config.cluster_name, found.stored_data)
        kept = removal.destroy(stacks, found, keep_data, wait=not no_wait)
    typer.echo(f"Cluster {config.cluster_name} " + ("is being deleted." if no_wait else "deleted."))
    lines = ["It is billed until it is deleted; `pdj aws status` shows the progress."] if no_wait else []
    lines += _still_billed(found.stored_data if kept else [], config, keep_data)
    typer.echo("\n".join(lines or ["It is no longer billed."]))


def _still_billed(stored_data: list[str], config: ClusterConfig, keep_data: bool) -> list[str]:
    """Say which data remains, what it costs, and how it is reused or deleted."""
    from paddlejob.cloud.aws.cost import kept_line

    lines = []
    if config.file_system_id:
        lines.append(f"File system {config.file_system_id}, which paddlejob did not create, remains and is billed.")
    if stored_data:
        again = "The next `pdj aws up` takes it up; `pdj aws destroy` deletes it."
        later = "It cannot be deleted before the cluster; run `pdj aws destroy` again afterwards."
        lines += ["Kept: " + ", ".join(stored_data), again if keep_data else later, kept_line(config.region)]
    return lines


def confirmation(yes: bool) -> Confirm:
    """Show a change and ask for confirmation. Without a terminal, only what disrupts something needs --yes."""

    def confirm(stack: str, changes: list[Change]) -> None:
        typer.echo("\n".join([f"Changes of {stack}:", *(change.line() for change in changes)]), err=True)
        disruptive = any(change.disruptive for change in changes)
        if yes or not (disruptive or _is_terminal()):
            return
        if not _is_terminal():
            raise BadInput("the change replaces or removes resources; confirm it with --yes")
        if not _agreed():
            raise BadInput("nothing was changed")

    return confirm


def _agreed() -> bool:
    try:
        return typer.confirm("Continue?", default=False, err=True)
    except typer.Abort:  # Ctrl-C or end of input
        return False


def _raise_blocked(blockers: list[str]) -> None:
    named = "\n".join(f"  {blocker}" for blocker in blockers)
    raise NotPossible(
        f"these resources block the deletion of the cluster; remove them, or try anyway with --force:\n{named}"
    )


def _confirm_data_loss(name: str, stored_data: list[str]) -> None:
    lost = " and ".join(stored_data)
    if not _is_terminal():
        raise BadInput(f"{lost} would be lost; keep it with --keep-data, or delete it with --yes")
    typer.echo(f"This permanently deletes {lost}. Use --keep-data to keep it.")
    try:
        answer = typer.prompt(f"Type {name} to continue", default="", show_default=False)
    except typer.Abort:  # Ctrl-C or end of input
        answer = ""
    if answer != name:
        raise BadInput("nothing was deleted")


def _is_terminal() -> bool:
    return sys.stdin.isatty()
