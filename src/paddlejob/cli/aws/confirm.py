"""Questions to the user before something is changed or lost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from paddlejob.errors import BadInput

if TYPE_CHECKING:
    from paddlejob.cloud.aws.stack.changes import Change, Confirm


def confirmation(yes: bool) -> Confirm:
    """Show a change and ask for confirmation. Without a terminal, only what disrupts something needs --yes."""

    def confirm(stack: str, changes: list[Change]) -> None:
        typer.echo("\n".join([f"Changes of {stack}:", *(change.line() for change in changes)]), err=True)
        disruptive = any(change.disruptive for change in changes)
        if yes or not (disruptive or is_terminal()):
            return
        if not is_terminal():
            raise BadInput("the change replaces or removes resources; confirm it with --yes")
        if not _agreed():
            raise BadInput("nothing was changed")

    return confirm


def _agreed() -> bool:
    try:
        return typer.confirm("Continue?", default=False, err=True)
    except typer.Abort:  # Ctrl-C or end of input
        return False


def confirm_data_loss(name: str, stored_data: list[str]) -> None:
    lost = " and ".join(stored_data)
    if not is_terminal():
        raise BadInput(f"{lost} would be lost; keep it with --keep-data, or delete it with --yes")
    typer.echo(f"This permanently deletes {lost}. Use --keep-data to keep it.")
    try:
        answer = typer.prompt(f"Type {name} to continue", default="", show_default=False)
    except typer.Abort:  # Ctrl-C or end of input
        answer = ""
    if answer != name:
        raise BadInput("nothing was deleted")


def is_terminal() -> bool:
    return sys.stdin.isatty()
