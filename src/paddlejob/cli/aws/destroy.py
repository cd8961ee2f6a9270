"""`pdj aws destroy`: delete a cluster, with or without its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.aws.confirm import confirm_data_loss
from paddlejob.cli.aws.shared import HERE, AssetsDir, Profile, interruptible, load, stacks_of
from paddlejob.errors import NotPossible

if TYPE_CHECKING:
    from paddlejob.cloud.aws.config.cluster import ClusterConfig


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
            confirm_data_loss(config.cluster_name, found.stored_data)
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


def _raise_blocked(blockers: list[str]) -> None:
    named = "\n".join(f"  {blocker}" for blocker in blockers)
    raise NotPossible(
        f"these resources block the deletion of the cluster; remove them, or try anyway with --force:\n{named}"
    )
