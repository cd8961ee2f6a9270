"""`pdj aws destroy`: delete a cluster, with or without its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.aws.confirm import confirm_data_loss
from paddlejob.cli.aws.shared import HERE, AssetsDir, Profile, interruptible, load, stacks_of
from paddlejob.errors import NotPossible

if TYPE_CHECKING:
    from paddlejob.cloud.aws.session import Aws
    from paddlejob.cloud.aws.stack.stack import Stacks


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
    _, config = load(assets)
    stacks = stacks_of(config, profile)
    remove(stacks, config.file_system_id, Removal(keep_data, no_wait, yes, force))


@dataclass(frozen=True)
class Removal:
    """What a user wants to be removed, and the commands that messages name."""

    keep_data: bool = False
    no_wait: bool = False
    yes: bool = False
    force: bool = False
    what: str = "Cluster"
    create: str = "pdj aws up"
    delete: str = "pdj aws destroy"


def remove(stacks: Stacks, file_system: str, wanted: Removal) -> None:
    """Delete the first stack, then the data, and say what remains. `file_system` is one that the user brought."""
    from paddlejob.cloud.aws.stack import destroy as removal

    name, aws = f"{wanted.what} {stacks.data.cluster}", stacks.cluster.aws
    with interruptible(stacks):
        found = removal.preflight(stacks)
        if found.cluster is None and (wanted.keep_data or found.data is None):
            typer.echo(f"Nothing to destroy: {name} does not exist in {aws.region}.")
            for line in _still_billed(aws, found.stored_data, file_system, wanted):
                typer.echo(line)
            return
        if found.blockers and not wanted.force:
            _raise_blocked(found.blockers)
        if found.stored_data and not (wanted.keep_data or wanted.yes or found.data_deletion_started):
            confirm_data_loss(stacks.data.cluster, found.stored_data)
        kept = removal.destroy(stacks, found, wanted.keep_data, wait=not wanted.no_wait)
    typer.echo(f"{name} " + ("is being deleted." if wanted.no_wait else "deleted."))
    lines = ["It is billed until it is deleted; `pdj aws status` shows the progress."] if wanted.no_wait else []
    lines += _still_billed(aws, found.stored_data if kept else [], file_system, wanted)
    typer.echo("\n".join(lines or ["It is no longer billed."]))


def _still_billed(aws: Aws, stored_data: list[str], file_system: str, wanted: Removal) -> list[str]:
    """Say which data remains, what it costs, and how it is reused or deleted."""
    from paddlejob.cloud.aws.cost import stored_line
    from paddlejob.cloud.aws.prices import prices

    lines = []
    if file_system:
        lines.append(f"File system {file_system}, which paddlejob did not create, remains and is billed.")
    if stored_data:
        again = f"The next `{wanted.create}` takes it up; `{wanted.delete}` deletes it."
        later = f"It cannot be deleted before the cluster; run `{wanted.delete}` again afterwards."
        lines += ["Kept: " + ", ".join(stored_data), again if wanted.keep_data else later, stored_line(prices(aws))]
    return lines


def _raise_blocked(blockers: list[str]) -> None:
    named = "\n".join(f"  {blocker}" for blocker in blockers)
    raise NotPossible(
        f"these resources block the deletion of the cluster; remove them, or try anyway with --force:\n{named}"
    )
