"""`pdj run`: jobs on this machine, without Kubernetes and without Docker."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli import program as programs
from paddlejob.cli.options import Output, PlainFormat, Python, check_namespace

if TYPE_CHECKING:
    from paddlejob.client.start.on_machine import Placed
    from paddlejob.local.runner import Held
    from paddlejob.local.state.store import JobStore


def command(
    invocation: typer.Context,
    files: programs.Files = None,
    module: programs.Module = "",
    name: programs.Name = "",
    workers: programs.Workers = None,
    servers: programs.Servers = None,
    gpus: programs.Gpus = None,
    devices: programs.Devices = "",
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
    from paddlejob.api.devices import request_devices
    from paddlejob.api.program import Overrides
    from paddlejob.client.interpreters import find_interpreter
    from paddlejob.client.start.check import check
    from paddlejob.client.start.on_machine import place
    from paddlejob.local.machine.resources import this_machine
    from paddlejob.local.options import RunOptions
    from paddlejob.local.state.store import JobStore
    from paddlejob.targets.remembered import read_remembered

    volumes = programs.directories("--volume", volume or [])
    images = programs.directories("--image", [one for one in image or [] if "=" in one])
    requested, variables = request_devices(gpus, devices), programs.environment(env or [])
    wanted = Overrides(name, workers, servers, requested, programs.image_name(image or []), "", variables)
    loaded = programs.load(files or [], module, programs.arguments(invocation), wanted, volumes, batch_jobs=True)
    default = namespace or read_remembered().local_namespace
    checked = check([one.in_namespace(default) for one in loaded], cluster=None, namespace=namespace)
    programs.warn(checked)
    programs.save_or_print(loaded, save, output if dry_run else None)
    if dry_run:
        return
    options = RunOptions(
        images={name: {"directory": directory} for name, directory in images.items()},
        volumes=volumes,
        python=find_interpreter(python) or RunOptions().interpreter,
        overcommit=overcommit,
    )
    store = JobStore()
    placed = place(checked, options, store, this_machine(), cpu, no_restart)
    for note in dict.fromkeys(note for one in placed for note in one.notes):
        typer.echo(f"note: {note}", err=True)
    if detach:
        _run_detached(store, placed)
    else:
        raise typer.Exit(_run_attached(store, placed))


def _begin(store: JobStore, placed: list[Placed]) -> Held:
    from paddlejob.client.start.begin import begin

    held, notes = begin(store, [(one.document, one.options) for one in placed])
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    return held


def _run_detached(store: JobStore, placed: list[Placed]) -> None:
    from paddlejob.local.runner import start_detached
    from paddlejob.targets.local.local_target import LocalTarget

    target = LocalTarget(store)
    start_detached(store, _begin(store, placed))
    for one in placed:
        job = f"{one.job.name}{target.flags(one.job.namespace)}"
        commands = f"`pdj get {job}`, `pdj logs -f {job}`, `pdj delete {job}`"
        typer.echo(f"{one.job.name} runs in the background; next: {commands}")


def _run_attached(store: JobStore, placed: list[Placed]) -> int:
    from contextlib import redirect_stdout
    from typing import TextIO, cast

    from paddlejob.cli.run.output import LastingOutput
    from paddlejob.cli.run.signals import Signals
    from paddlejob.cli.run.watch import watch
    from paddlejob.local.runner import start_attached

    with Signals() as signals:
        held = _begin(store, placed)
        runner = start_attached(store, held)
        with redirect_stdout(cast(TextIO, LastingOutput(sys.stdout))):
            return watch(store, [folder.key for folder, _ in held], runner, signals)
