"""`pdj`: finds the verb, runs it, and turns every error into one line and an exit status."""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from paddlejob.cli.plugin import is_plugin
from paddlejob.errors import BadInput, PaddleJobError


@dataclass(frozen=True)
class Verb:
    """Where a verb is, and the line that stands for it in the help: nothing of it is imported for that."""

    target: str
    help: str


VERBS = {
    "run": Verb("verbs.run:command", "Train the jobs of a file on this machine."),
    "list": Verb("verbs.list_jobs:command", "List jobs."),
    "get": Verb("verbs.get:command", "Show a job and its replicas."),
    "logs": Verb("verbs.logs:command", "Print what the replicas of a job have written."),
    "why": Verb("verbs.why:command", "Explain in words how a job is doing, and what to do next."),
    "scale": Verb("verbs.scale:command", "Change the number of workers."),
    "suspend": Verb("verbs.suspend:command", "Stop a job; it can go on later."),
    "resume": Verb("verbs.resume:command", "Let a suspended or interrupted job go on."),
    "delete": Verb("verbs.delete:command", "Delete jobs and end what runs of them."),
    "init": Verb("verbs.init:command", "Write a commented job file to start from."),
    "doctor": Verb("verbs.doctor:command", "Check this machine, and say what to change."),
    "validate": Verb("verbs.validate:command", "Check job files offline."),
    "plan": Verb("verbs.plan:command", "Print the objects that a job would get."),
    "submit": Verb("verbs.submit:command", "Train the jobs of a file on a cluster."),
    "install": Verb("verbs.install:command", "Install the operator in a cluster."),
    "uninstall": Verb("verbs.uninstall:command", "Remove the operator from a cluster."),
    "convert": Verb("verbs.convert:command", "Turn another kind of job into a PaddleJob."),
    "crd": Verb("verbs.crd:command", "Print the CustomResourceDefinition."),
    "operator": Verb("verbs.operator:command", "Run the controller."),
    "data": Verb("verbs.data:app", "Split training data, and bring it to where it is read."),
    "aws": Verb("aws.app:app", "A cluster on AWS."),
}
"""In the order of the help."""


class LazyGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For the help: a command that knows no more than its name and one line."""
        if cmd_name not in self.list_commands(ctx):
            return None
        stand_in = typer.Typer(add_completion=False, rich_markup_mode=None)
        stand_in.command(cmd_name, help=VERBS[cmd_name].help)(lambda: None)
        return typer.main.get_command(stand_in)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in self.list_commands(ctx):
            return args[0], load_verb(args[0]), args[1:]
        if args and (close := difflib.get_close_matches(args[0], self.list_commands(ctx), 1)):
            raise BadInput(f"there is no verb {args[0]}; did you mean `pdj {close[0]}`?")
        return super().resolve_command(ctx, args)


def load_verb(name: str) -> Any:
    """The click command of a verb."""
    module, _, attribute = VERBS[name].target.partition(":")
    found = getattr(importlib.import_module(f"paddlejob.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(found)
    return typer.main.get_command(alone)


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pdj {version('paddlejob')}")
        raise typer.Exit


@app.callback()
def _pdj(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Train PaddlePaddle models on more than one process: on this machine or on a Kubernetes cluster."""


def main() -> None:
    try:
        app(prog_name="kubectl pdj" if is_plugin() else "pdj")
    except PaddleJobError as error:
        _end(str(error), error.exit_code)
    except KeyboardInterrupt:
        _end("", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
    except OSError as error:
        _end(_of_the_system(error), 1)
    except Exception as error:
        if os.environ.get("PADDLEJOB_DEBUG"):
            raise
        _end(f"this is a mistake in pdj ({type(error).__name__}: {error}); PADDLEJOB_DEBUG=1 shows where", 70)


def _of_the_system(error: OSError) -> str:
    words = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"{words}; free some room (`pdj delete JOB` removes a job's logs), or keep jobs elsewhere: PADDLEJOB_STATE"
        )
    if error.errno in (errno.EROFS, errno.EACCES):
        return f"{words}; jobs can be kept elsewhere: set PADDLEJOB_STATE"
    return words


def _end(words: str, code: int) -> None:
    if words:
        sys.stdout.flush()
        print(f"pdj: {words}", file=sys.stderr)
    sys.exit(code)
