"""`pdj submit`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli import program as programs
from paddlejob.cli.options import Context, DryRun, Output, PlainFormat, check_namespace

if TYPE_CHECKING:
    from paddlejob.client.submit.code import Shipment
    from paddlejob.client.submit.submission import Submission
    from paddlejob.client.targets.cluster import ClusterTarget


def command(
    invocation: typer.Context,
    files: programs.Files = None,
    module: programs.Module = "",
    name: programs.Name = "",
    workers: programs.Workers = None,
    servers: programs.Servers = None,
    gpus: programs.Gpus = None,
    env: programs.Environment = None,
    image: Annotated[
        str,
        typer.Option(help="Image of the job. Defaults to the setting `image`, or Paddle's own.", metavar="IMAGE"),
    ] = "",
    volume: Annotated[
        list[str] | None,
        typer.Option(
            help="Mount the volume claim NAME at PATH, by default /mnt/NAME. Repeatable.", metavar="NAME=PATH"
        ),
    ] = None,
    code: Annotated[
        str, typer.Option(help="Ship the files of this directory with the job and train in it.", metavar="DIR")
    ] = "",
    queue: Annotated[
        str,
        typer.Option(
            help="Queue in which the job waits for quota: Kueue's, or Volcano's if it asks for that.", metavar="QUEUE"
        ),
    ] = "",
    save: programs.Save = "",
    output: PlainFormat = Output.yaml,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Watch the jobs until they end, or stream the logs to a pipe; Ctrl-C only detaches."
        ),
    ] = False,
    save_logs: Annotated[
        str, typer.Option("--save-logs", help="With --follow, also write the logs to this directory.", metavar="DIR")
    ] = "",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help="Namespace of objects that set none.",
            metavar="NAMESPACE",
            callback=check_namespace,
        ),
    ] = "",
    context: Context = "",
    dry_run: DryRun = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the jobs end; the exit status is 0 if all complete.")
    ] = False,
) -> None:
    """Train a program, or the jobs in files, on a cluster.

    Other objects in the files are created or updated first. If the API server rejects any object, nothing is changed.
    Arguments after -- go to the program.

    \b
    Example:
      pdj submit train.py --workers 8 --gpus 1 --image IMAGE --code . --follow -- --epochs 3
      pdj submit job.yaml -n training --wait
    """
    from paddlejob.api.program import Overrides
    from paddlejob.client.files import check_image
    from paddlejob.client.settings import default_image
    from paddlejob.client.submit.code import ship
    from paddlejob.client.submit.submission import read_submission
    from paddlejob.client.targets.target import cluster_target
    from paddlejob.errors import BadInput

    wanted = Overrides(
        name=name,
        workers=workers,
        servers=servers,
        gpus=gpus,
        image=check_image("--image", image),
        queue=queue,
        environment=programs.environment(env or []),
        claims=programs.claims(volume or []),
    )
    chosen = programs.given(
        files or [], module, programs.arguments(invocation), wanted, image=lambda: default_image(gpus or 0)
    )
    submission, shipment = read_submission(chosen, namespace), None
    if save_logs and (not follow or len(submission.jobs) > 1):
        raise BadInput("--save-logs: works with --follow and a single job; use `pdj logs -f JOB --save DIR` for others")
    for warning in submission.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if code:
        submission, shipment = ship(submission, code, chosen.program.file if chosen.program else "")
    if save:
        programs.save_or_print(chosen, save, None)
    if dry_run:
        _print(submission.in_namespace(namespace or _default_namespace(context)), output)
        return
    target = cluster_target(context)
    submission = submission.in_namespace(namespace or target.default_namespace)
    _submit(target, submission, shipment)
    if follow:
        _follow(target, submission, save_logs)
    if wait or follow:
        _wait(target, submission)


def _default_namespace(context: str) -> str:
    """That of the cluster; a dry run needs none."""
    from paddlejob.client.targets.target import cluster_target
    from paddlejob.errors import NoCredentials
    from paddlejob.plan import names

    try:
        return cluster_target(context).default_namespace
    except NoCredentials:
        if context:
            raise
        return names.DEFAULT_NAMESPACE


def _print(submission: Submission, output: Output) -> None:
    from paddlejob.client.describe.formats import as_list, to_json, to_yaml

    documents = list(submission.documents)
    json = to_json(documents[0] if len(documents) == 1 else as_list(documents))
    typer.echo(json if output is Output.json else to_yaml(*documents), nl=False)


def _submit(target: ClusterTarget, submission: Submission, shipment: Shipment | None) -> None:
    from paddlejob.client.submit.send import operator_warnings, send

    for line in send(target, submission, shipment):
        typer.echo(line)
    for warning in operator_warnings(target, submission):
        typer.echo(f"warning: {warning}", err=True)
    for namespace, name in submission.jobs:
        flags = target.flags(namespace)
        typer.echo(f"next: `pdj why {name}{flags}`, `pdj logs -f {name}{flags}`, `pdj delete {name}{flags}`")


def _follow(target: ClusterTarget, submission: Submission, save_logs: str) -> None:
    """Watch the jobs on a terminal; elsewhere print the logs of a single job, and of several only their phases."""
    from paddlejob.cli.output.pieces import copied, print_pieces
    from paddlejob.cli.run.attach import watch_jobs
    from paddlejob.client.targets.target import LogChoice

    if sys.stdout.isatty() and not save_logs:
        raise typer.Exit(watch_jobs(target, submission.jobs))
    if len(submission.jobs) > 1:
        return
    namespace, name = submission.jobs[0]
    pieces = target.logs(namespace, name, LogChoice(follow=True))
    try:
        print_pieces(copied(pieces, save_logs, name) if save_logs else pieces)
    except KeyboardInterrupt:
        typer.echo(f"{name} keeps training; follow it with `pdj logs -f {name}{target.flags(namespace)}`", err=True)
        raise typer.Exit(130) from None


def _wait(target: ClusterTarget, submission: Submission) -> None:
    import time

    from paddlejob.api.types import Phase
    from paddlejob.cli.run.attach import CLUSTER_PAUSE, INTERRUPTED, detach, look_again
    from paddlejob.cli.run.plain import PlainScreen
    from paddlejob.errors import JobFailed

    screen, views = PlainScreen(), [target.job(*key) for key in submission.jobs]
    try:
        screen.show(views)
        while not all(view.job.status.finished for view in views):
            time.sleep(CLUSTER_PAUSE)
            views = look_again(target, views, screen)
            screen.show(views)
    except KeyboardInterrupt:
        raise typer.Exit(detach(screen, views, INTERRUPTED)) from None
    failed = [view.job for view in views if view.job.status.phase is not Phase.COMPLETED]
    if failed:
        raise JobFailed("\n".join(f"{job.name} failed: {job.status.message}" for job in failed))
