"""`pdj run`: the jobs of a file on this machine, without Kubernetes and without Docker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from paddlejob.cli.run.prepare import Prepared
    from paddlejob.local.runner import Held
    from paddlejob.local.store import Store


def command(
    files: Annotated[list[str], typer.Argument(help="Job files; - is standard input.", metavar="FILE")],
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return at once; the jobs run on.")] = False,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Train on the CPU: leave out GPUs and what chooses a node.")
    ] = False,
    image: Annotated[
        list[str] | None, typer.Option(help="The directory that an image stands for.", metavar="NAME=DIR")
    ] = None,
    volume: Annotated[
        list[str] | None,
        typer.Option(help="The directory that a claim, or a path of this machine, stands for.", metavar="NAME=DIR"),
    ] = None,
    python: Annotated[str, typer.Option(help="The Python to train with; else that of the active environment.")] = "",
    overcommit: Annotated[
        bool, typer.Option("--overcommit", help="Run even if more CPU or memory is asked for than is there.")
    ] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="For jobs that name none.")] = "",
) -> None:
    """Train the jobs of a file on this machine.

    The exit status is 0 when all of them completed. Example: pdj run job.yaml
    """
    from paddlejob.cli.run.prepare import pairs, prepare
    from paddlejob.local.machine.resources import this_machine
    from paddlejob.local.options import RunOptions
    from paddlejob.local.store import Store

    options = RunOptions(
        images={name: {"directory": directory} for name, directory in pairs("--image", image or []).items()},
        volumes=pairs("--volume", volume or []),
        python=_interpreter(python) or RunOptions().interpreter,
        overcommit=overcommit,
    )
    store = Store()
    prepared = prepare(files, options, store, this_machine(), namespace, cpu)
    for note in dict.fromkeys(note for one in prepared for note in one.notes):
        typer.echo(f"note: {note}", err=True)
    _tell_replaced(store, prepared)
    if detach:
        _run_detached(store, prepared)
    else:
        raise typer.Exit(_run_attached(store, prepared))


def _tell_replaced(store: Store, prepared: list[Prepared]) -> None:
    """A job that could have gone on."""
    from paddlejob.local.store import at_rest

    for one in prepared:
        folder = store.folder((one.job.namespace, one.job.name))
        before = folder.job()
        if before and not before.status.finished and (at_rest(before) or not folder.has_runner):
            name = one.job.name
            words = f"job {name} was interrupted and begins anew; `pdj resume {name}` would have let it go on"
            typer.echo(f"note: {words}", err=True)


def _interpreter(python: str) -> str:
    import shutil

    from paddlejob.errors import BadInput

    found = shutil.which(python) if python else ""
    if found is None:
        raise BadInput(f"--python {python}: there is no such program")
    return found


def _begin(store: Store, prepared: list[Prepared]) -> Held:
    """All jobs or none."""
    import time

    held: Held = []
    try:
        for one in prepared:
            held.append(store.begin(one.document, one.options, time.time()))
    except BaseException:
        for folder, lock in held:
            folder.remove()
            lock.release()
        raise
    return held


def _run_detached(store: Store, prepared: list[Prepared]) -> None:
    from paddlejob.local.runner import start_detached

    start_detached(store, _begin(store, prepared))
    for one in prepared:
        name = one.job.name
        typer.echo(f"job {name} runs in the background: `pdj get {name}`, `pdj logs -f {name}`, `pdj delete {name}`")


def _run_attached(store: Store, prepared: list[Prepared]) -> int:
    from paddlejob.cli.run.signals import Signals
    from paddlejob.cli.run.watch import watch
    from paddlejob.local.runner import start_attached

    with Signals() as signals:
        held = _begin(store, prepared)
        host = start_attached(store, held)
        return watch(store, [folder.key for folder, _ in held], host, signals)
