"""`pdj run`: jobs on this machine, without Kubernetes and without Docker."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli import program as programs
from paddlejob.cli.options import Output, PlainFormat, Python, check_namespace

if TYPE_CHECKING:
    from paddlejob.client.prepare import Prepared
    from paddlejob.local.runner import Held
    from paddlejob.local.state.store import Store


def command(
    invocation: typer.Context,
    files: programs.Files = None,
    module: programs.Module = "",
    name: programs.Name = "",
    workers: programs.Workers = None,
    servers: programs.Servers = None,
    gpus: programs.Gpus = None,
    env: programs.Environment = None,
    save: programs.Save = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the jobs without running them.")] = False,
    output: PlainFormat = Output.yaml,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Run the jobs in the background.")] = False,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Train on the CPU: ignore GPU requests and node selectors.")
    ] = False,
    image: Annotated[
        list[str] | None,
        typer.Option(
            help="Run the code in directory DIR for the image NAME; or only NAME, for a program. Repeatable.",
            metavar="NAME=DIR",
        ),
    ] = None,
    volume: Annotated[
        list[str] | None,
        typer.Option(
            help="Use directory DIR for the volume claim or the host path NAME. Repeatable.", metavar="NAME=DIR"
        ),
    ] = None,
    python: Python = "",
    overcommit: Annotated[
        bool,
        typer.Option(
            "--overcommit", help="Run even if the jobs request more CPU or memory than available; share GPUs in use."
        ),
    ] = False,
    no_restart: Annotated[
        bool, typer.Option("--no-restart", help="Fail at the first failure, as with backoffLimit: 0.")
    ] = False,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", help="Namespace of jobs that set none.", metavar="NAMESPACE", callback=check_namespace
        ),
    ] = "",
) -> None:
    """Train a program, or the jobs in files, on this machine, without Kubernetes.

    The exit status is 0 if all jobs complete. If the output is closed, as by `pdj run FILE | head`, the jobs keep
    running. Arguments after -- go to the program.

    \b
    Example:
      pdj run train.py --workers 2 -- --epochs 3
      pdj run job.yaml
    """
    from paddlejob.api.program import Overrides
    from paddlejob.client.interpreters import find_interpreter
    from paddlejob.client.prepare import pairs, prepare
    from paddlejob.client.targets.remembered import read_remembered
    from paddlejob.local.machine.resources import this_machine
    from paddlejob.local.options import RunOptions
    from paddlejob.local.state.store import Store

    mapped = [one for one in image or [] if "=" in one]
    directories = pairs("--volume", volume or [])
    wanted = Overrides(
        name=name,
        workers=workers,
        servers=servers,
        gpus=gpus,
        image=programs.image_name(image or []),
        environment=programs.environment(env or []),
    )
    chosen = programs.given(files or [], module, programs.arguments(invocation), wanted, directories)
    if save or dry_run:
        programs.save_or_print(chosen, save, output if dry_run else None)
    if dry_run:
        return
    options = RunOptions(
        folder=str(Path.cwd()) if chosen.program else "",
        images={name: {"directory": directory} for name, directory in pairs("--image", mapped).items()},
        volumes=directories,
        python=find_interpreter(python) or RunOptions().interpreter,
        overcommit=overcommit,
        environment=dict(os.environ),
    )
    store = Store()
    if not namespace:
        chosen = chosen.in_namespace(read_remembered().local_namespace)
    prepared = prepare(chosen, options, store, this_machine(), namespace, cpu, no_restart)
    notes = [note for one in prepared for note in one.notes] + _restart_notes(store, prepared)
    for note in dict.fromkeys(notes):
        typer.echo(f"note: {note}", err=True)
    for warning in dict.fromkeys(warning for one in prepared for warning in one.warnings):
        typer.echo(f"warning: {warning}", err=True)
    if detach:
        _run_detached(store, prepared)
    else:
        raise typer.Exit(_run_attached(store, prepared))


def _restart_notes(store: Store, prepared: list[Prepared]) -> list[str]:
    """One note for every job that starts over although it could have been resumed."""
    from paddlejob.client.targets.local import LocalTarget
    from paddlejob.local.state.files import DamagedFile
    from paddlejob.local.state.store import is_inactive

    notes = []
    for one in prepared:
        name, flags = one.job.name, LocalTarget(store).flags(one.job.namespace)
        folder = store.folder((one.job.namespace, name))
        try:
            previous = folder.job()
            if previous and not previous.status.finished:
                folder.options()
        except DamagedFile as error:
            notes.append(f"{error}; {name} starts over")
            continue
        if previous and not previous.status.finished and (is_inactive(previous) or not folder.has_runner):
            command = f"pdj resume {name}{flags}"
            notes.append(f"{name} was interrupted and starts over; to continue it instead, use `{command}`")
    return notes


def _begin(store: Store, prepared: list[Prepared]) -> Held:
    from paddlejob.client.begin import begin

    held, notes = begin(store, [(one.document, one.options) for one in prepared])
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    return held


def _run_detached(store: Store, prepared: list[Prepared]) -> None:
    from paddlejob.client.targets.local import LocalTarget
    from paddlejob.local.runner import start_detached

    target = LocalTarget(store)
    start_detached(store, _begin(store, prepared))
    for one in prepared:
        job = f"{one.job.name}{target.flags(one.job.namespace)}"
        commands = f"`pdj get {job}`, `pdj logs -f {job}`, `pdj delete {job}`"
        typer.echo(f"{one.job.name} runs in the background; next: {commands}")


def _run_attached(store: Store, prepared: list[Prepared]) -> int:
    from contextlib import redirect_stdout
    from typing import TextIO, cast

    from paddlejob.cli.run.output import LastingOutput
    from paddlejob.cli.run.signals import Signals
    from paddlejob.cli.run.watch import watch
    from paddlejob.local.runner import start_attached

    with Signals() as signals:
        held = _begin(store, prepared)
        runner = start_attached(store, held)
        with redirect_stdout(cast(TextIO, LastingOutput(sys.stdout))):
            return watch(store, [folder.key for folder, _ in held], runner, signals)
