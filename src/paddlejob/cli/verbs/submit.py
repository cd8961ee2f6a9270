"""`pdj submit`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli import program as programs
from paddlejob.cli.options import Context, DryRun, Output, PlainFormat, check_namespace

if TYPE_CHECKING:
    from paddlejob.client.start.shipment import Shipment
    from paddlejob.client.start.submission import Submission
    from paddlejob.targets.cluster.cluster_target import ClusterTarget


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
    image: programs.Image = "",
    volume: programs.Claims = None,
    code: Annotated[
        str, typer.Option(help="Ship the files of this directory with the job and train in it.", metavar="DIR")
    ] = "",
    queue: programs.Queue = "",
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
    from paddlejob.api.devices import request_devices
    from paddlejob.api.fault import Severity
    from paddlejob.api.program import Overrides
    from paddlejob.client.files import check_image
    from paddlejob.client.settings import default_image
    from paddlejob.client.start.check import check
    from paddlejob.client.start.shipment import ship
    from paddlejob.client.start.submission import submission_of
    from paddlejob.errors import BadInput
    from paddlejob.targets.choose import cluster_target

    requested, variables = request_devices(gpus, devices), programs.environment(env or [])
    claims = programs.claims(volume or [])
    wanted = Overrides(name, workers, servers, requested, check_image(image), queue, variables, claims)
    loaded = programs.load(
        files or [], module, programs.arguments(invocation), wanted, image=lambda: default_image(wanted.devices)
    )
    default = namespace or _default_namespace(context)
    checked = check([one.in_namespace(default) for one in loaded], cluster=Severity.ERROR, namespace=namespace)
    submission, shipment = submission_of(checked), None
    if save_logs and (not follow or len(submission.jobs) > 1):
        raise BadInput("--save-logs works with --follow and a single job; use `pdj logs -f JOB --save DIR` for others")
    programs.warn(checked)
    if code:
        program = loaded[0].program
        submission, shipment = ship(submission, code, program.file if program else "")
    programs.save_or_print(loaded, save, None)
    if dry_run:
        programs.print_objects(list(submission.documents), output)
        return
    target = cluster_target(context)
    _submit(target, submission, shipment)
    if follow:
        _follow(target, submission, save_logs)
    if wait or follow:
        _wait(target, submission)


def _default_namespace(context: str) -> str:
    """That of the cluster, if one is known; the check of the jobs needs none."""
    from paddlejob import contract
    from paddlejob.errors import NoCredentials
    from paddlejob.targets.choose import cluster_target

    try:
        return cluster_target(context).default_namespace
    except NoCredentials:
        if context:
            raise
        return contract.DEFAULT_NAMESPACE


def _submit(target: ClusterTarget, submission: Submission, shipment: Shipment | None) -> None:
    from paddlejob.client.start.send import operator_warnings, send

    for line in send(target, submission, shipment):
        typer.echo(line)
    for warning in operator_warnings(target, submission):
        typer.echo(f"warning: {warning}", err=True)
    for namespace, name in submission.jobs:
        flags = target.flags(namespace)
        typer.echo(f"next: `pdj why {name}{flags}`, `pdj logs -f {name}{flags}`, `pdj delete {name}{flags}`")


def _follow(target: ClusterTarget, submission: Submission, save_logs: str) -> None:
    """Watch the jobs on a terminal; elsewhere print the logs of a single job, and of several only their phases."""
    from paddlejob.cli.output.logs import copied, print_logs, say_retry
    from paddlejob.cli.run.attach import watch_jobs
    from paddlejob.logs.selection import LogSelection
    from paddlejob.targets.sync import SyncTarget

    if sys.stdout.isatty() and not save_logs:
        raise typer.Exit(watch_jobs(SyncTarget(target), submission.jobs))
    if len(submission.jobs) > 1:
        return
    namespace, name = submission.jobs[0]
    several, batches = SyncTarget(target).logs(namespace, name, LogSelection(), True, say_retry)
    try:
        print_logs(several, copied(several, batches, save_logs, name) if save_logs else batches)
    except KeyboardInterrupt:
        typer.echo(f"{name} keeps training; follow it with `pdj logs -f {name}{target.flags(namespace)}`", err=True)
        raise typer.Exit(130) from None


def _wait(cluster: ClusterTarget, submission: Submission) -> None:
    import time

    from paddlejob.api.types import Phase
    from paddlejob.cli.run.attach import INTERRUPTED, detach, look_again
    from paddlejob.cli.run.plain import PlainScreen
    from paddlejob.errors import JobFailed
    from paddlejob.targets.sync import SyncTarget

    target = SyncTarget(cluster)
    screen, views = PlainScreen(), [target.job(*key) for key in submission.jobs]
    try:
        screen.show(views)
        while not all(view.job.status.finished for view in views):
            time.sleep(target.pause)
            views = look_again(target, views, screen)
            screen.show(views)
    except KeyboardInterrupt:
        raise typer.Exit(detach(screen, views, INTERRUPTED)) from None
    failed = [view.job for view in views if view.job.status.phase is not Phase.COMPLETED]
    if failed:
        raise JobFailed("\n".join(f"{job.name} failed: {job.status.message}" for job in failed))
