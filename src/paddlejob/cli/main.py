"""`pdj`: finds the verb, runs it, and turns every error into one message and an exit status."""

from __future__ import annotations

import difflib
import errno
import importlib
import io
import os
import sys
from dataclasses import dataclass
from typing import Annotated, Any, TextIO, cast

import typer
from typer.core import TyperCommand, TyperGroup

from paddlejob.cli.options import AFTER_DASHES, option_of
from paddlejob.cli.output.terminal import CleanOutput
from paddlejob.cli.usage import RUN_PROGRAMS, UsageError, usage_message
from paddlejob.errors import BadArgument, BadInput, PaddleJobError
from paddlejob.targets.choose import is_plugin


@dataclass(frozen=True)
class Verb:
    """The module and function of a verb, and its line in the help, which must not import the verb."""

    target: str
    help: str
    group: str


TRAIN, SEE, CHANGE, CHECK, CLUSTER = "Train", "See", "Change", "Check", "Clusters and data"

VERBS = {
    "run": Verb("verbs.run:command", "Train jobs on this machine.", TRAIN),
    "submit": Verb("verbs.submit:command", "Train jobs on a cluster.", TRAIN),
    "rerun": Verb("verbs.jobs.rerun:command", "Run a finished job again.", TRAIN),
    "init": Verb("verbs.init:command", "Create a commented job file to start from.", TRAIN),
    "list": Verb("verbs.jobs.get:list_jobs", "List jobs.", SEE),
    "get": Verb("verbs.jobs.get:get", "Show a job, its progress and its replicas.", SEE),
    "why": Verb("verbs.jobs.get:why", "Explain the state of a job and what to do next.", SEE),
    "watch": Verb("verbs.jobs.watch:command", "Watch a job live.", SEE),
    "logs": Verb("verbs.jobs.logs:command", "Print the logs of a job's replicas.", SEE),
    "metrics": Verb("verbs.jobs.metrics:command", "Print the metrics that a job has logged.", SEE),
    "web": Verb("verbs.web:command", "Show jobs in a browser.", SEE),
    "code": Verb("verbs.jobs.code:command", "Write the code that was submitted with a job to a directory.", SEE),
    "scale": Verb("verbs.jobs.scale:command", "Change the number of workers of a job.", CHANGE),
    "suspend": Verb("verbs.jobs.suspend:suspend", "Stop a job so that it can be resumed later.", CHANGE),
    "resume": Verb("verbs.jobs.suspend:resume", "Resume a suspended or interrupted job.", CHANGE),
    "delete": Verb("verbs.jobs.delete:command", "Stop and delete jobs.", CHANGE),
    "clean": Verb("verbs.jobs.clean:command", "Remove the logs of previous runs on this machine.", CHANGE),
    "validate": Verb("verbs.validate:command", "Validate job files offline.", CHECK),
    "plan": Verb("verbs.plan:plan", "Print the objects that a job would get.", CHECK),
    "doctor": Verb("verbs.doctor:command", "Check whether this machine or a cluster is ready.", CHECK),
    "convert": Verb("verbs.convert:command", "Convert other kinds of jobs to PaddleJobs.", CHECK),
    "target": Verb(
        "verbs.target:command", "Show or choose the target of commands: this machine or a cluster.", CLUSTER
    ),
    "install": Verb("verbs.install:install", "Install or update the operator in a cluster.", CLUSTER),
    "uninstall": Verb("verbs.install:uninstall", "Remove the operator from a cluster.", CLUSTER),
    "operator": Verb("verbs.operator:command", "Run the controller.", CLUSTER),
    "crd": Verb("verbs.plan:crd", "Print the CustomResourceDefinition of PaddleJob.", CLUSTER),
    "aws": Verb("aws.app:app", "Manage a cluster on AWS.", CLUSTER),
    "data": Verb("verbs.data:app", "Split and stage training data.", CLUSTER),
}
"""In the order of the help."""
SYNONYMS = {
    "ls": ("list",),
    "ps": ("list",),
    "jobs": ("list",),
    "status": ("get", "why"),
    "describe": ("get", "why"),
    "show": ("get",),
    "explain": ("why",),
    "events": ("why",),
    "log": ("logs",),
    "tail": ("logs -f",),
    "attach": ("watch",),
    "top": ("watch",),
    "ui": ("web",),
    "dashboard": ("web",),
    "stop": ("suspend", "delete"),
    "pause": ("suspend",),
    "kill": ("delete",),
    "cancel": ("delete",),
    "rm": ("delete",),
    "remove": ("delete",),
    "start": ("run", "submit"),
    "train": ("run", "submit"),
    "launch": ("run", "submit"),
    "apply": ("submit",),
    "create": ("submit",),
    "restart": ("rerun",),
    "retry": ("rerun",),
    "check": ("validate", "doctor"),
    "lint": ("validate",),
    "new": ("init",),
}
"""Verbs of other tools, and ours for the same."""


class VerbCommand(TyperCommand):
    """A command whose help shows arguments as kubectl does: by name only."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What follows `--` belongs to the program that a verb runs; other verbs take it as arguments."""
        if self.name in RUN_PROGRAMS and "--" in args:
            dashes = args.index("--")
            ctx.meta[AFTER_DASHES] = args[dashes + 1 :]
            args = args[:dashes]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, options = [], []
        for parameter in self.get_params(ctx):
            name, text = parameter.get_help_record(ctx) or ("", "")
            if name and parameter.param_type_name == "argument":
                arguments.append((name.partition(" <")[0], text))
            elif name:
                options.append((name, text))
        for title, records in (("Arguments", arguments), ("Options", options)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class LazyGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for group in dict.fromkeys(verb.group for verb in VERBS.values()):
            with formatter.section(group):
                formatter.write_dl([(name, verb.help) for name, verb in VERBS.items() if verb.group == group])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For the help: a command that knows only its name and one line."""
        if cmd_name not in VERBS:
            return None
        return _command(cmd_name, lambda: None, VERBS[cmd_name].help)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in VERBS:
            return args[0], load_verb(args[0]), args[1:]
        if args and not args[0].startswith("-"):
            meant = SYNONYMS.get(args[0]) or difflib.get_close_matches(args[0], VERBS, 1)
            named = " or ".join(f"`pdj {verb}`" for verb in meant)
            remedy = f"did you mean {named}?" if meant else "list all commands with `pdj --help`"
            raise BadInput(f"unknown command {args[0]}; {remedy}")
        return super().resolve_command(ctx, args)


def load_verb(name: str) -> Any:
    """The click command of a verb."""
    module, _, attribute = VERBS[name].target.partition(":")
    target = getattr(importlib.import_module(f"paddlejob.cli.{module}"), attribute)
    return typer.main.get_command(target) if isinstance(target, typer.Typer) else _command(name, target)


def _command(name: str, function: Any, help: str | None = None) -> Any:
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, cls=VerbCommand, help=help)(function)
    return typer.main.get_command(single)


app = typer.Typer(
    cls=LazyGroup,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"pdj {version('paddlejob')}")
        raise typer.Exit


@app.callback()
def _pdj(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Train PaddlePaddle models with several processes, on this machine or on a Kubernetes cluster.

    \b
    Example:
      pdj init -o job.yaml && pdj run job.yaml
    """


def main() -> None:
    open_standard_descriptors()
    _escape_what_the_locale_lacks()
    sys.stdout, sys.stderr = (cast(TextIO, CleanOutput(stream)) for stream in (sys.stdout, sys.stderr))
    name = "kubectl pdj" if is_plugin() else "pdj"
    try:
        sys.exit(app(args=sys.argv[1:] or ["--help"], prog_name=name, standalone_mode=False) or 0)
    except BadArgument as error:
        _exit(error.exit_code, error.named(option_of(error.argument)))
    except PaddleJobError as error:
        _exit(error.exit_code, str(error))
    except UsageError as error:
        verb = next((one for one in sys.argv[1:2] if one in VERBS), "")
        _exit(BadInput.exit_code, usage_message(error, f"{name} {verb}".strip()))
    except typer.Abort:
        _exit(1, "aborted; nothing was changed")
    except KeyboardInterrupt:
        _exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
    except OSError as error:
        _exit(1, _describe(error))
    except Exception as error:
        if os.environ.get("PADDLEJOB_DEBUG"):
            raise
        _exit(70, f"this is a bug in pdj ({type(error).__name__}: {error}); set PADDLEJOB_DEBUG=1 for a traceback")


def open_standard_descriptors() -> None:
    """As after `pdj run <&-`: a file that is opened later must not become standard input or output."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _escape_what_the_locale_lacks() -> None:
    """A line of a program may have characters that GBK or Latin-1 lacks; printing it must not end the training."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _describe(error: OSError) -> str:
    message = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "free some space (`pdj clean` removes the logs of previous runs, `pdj delete JOB` those of a job)"
        return f"{message}; {remedy}, or set PADDLEJOB_STATE to another disk"
    if error.errno in (errno.EROFS, errno.EACCES):
        return f"{message}; set PADDLEJOB_STATE to a writable directory"
    return message


def _exit(code: int, message: str = "") -> None:
    if message:
        sys.stdout.flush()
        print(f"pdj: {message}", file=sys.stderr)
    sys.exit(code)
