"""`pdj submit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import Context, DryRun, JobFiles, check_namespace

if TYPE_CHECKING:
    from paddlejob.cli.submit.submission import Submission
    from paddlejob.cli.targets.cluster import ClusterTarget


def command(
    files: JobFiles,
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
    """Train the jobs in files on a cluster.

    Other objects in the files are created or updated first. If the API server rejects any object, nothing is changed.

    \b
    Example:
      pdj submit job.yaml -n training --wait
    """
    from paddlejob.cli.output.formats import to_yaml
    from paddlejob.cli.submit.submission import read_submission
    from paddlejob.cli.targets.cluster import ClusterTarget

    submission = read_submission(files, namespace)
    for warning in submission.warnings:
        typer.echo(f"warning: {warning}", err=True)
    target = ClusterTarget(context)
    submission = submission.in_namespace(namespace or target.default_namespace)
    if dry_run:
        typer.echo(to_yaml(*submission.documents), nl=False)
        return
    _submit(target, submission)
    if wait:
        _wait(target, submission)


def _submit(target: ClusterTarget, submission: Submission) -> None:
    from paddlejob.cli.install.operators import find_operators, unavailable_message, unwatched_message
    from paddlejob.cli.submit.apply import apply

    for line in target.with_client(lambda client: apply(client, submission, target)):
        typer.echo(line)
    operators = target.with_client(find_operators)
    for namespace in dict.fromkeys(key[0] for key in submission.jobs):
        unwatched = unwatched_message(operators, namespace, target.context_flag)
        warning = unwatched or unavailable_message(operators, namespace)
        if warning:
            typer.echo(f"warning: {warning}", err=True)
    for namespace, name in submission.jobs:
        flags = target.flags(namespace)
        typer.echo(f"next: `pdj why {name}{flags}`, `pdj logs -f {name}{flags}`, `pdj delete {name}{flags}`")


def _wait(target: ClusterTarget, submission: Submission) -> None:
    import time

    from paddlejob.api.types import Phase
    from paddlejob.cli.run.plain import PlainScreen
    from paddlejob.errors import JobFailed

    screen = PlainScreen()
    while True:
        views = [target.job(*key) for key in submission.jobs]
        screen.show(views)
        if all(view.job.status.finished for view in views):
            break
        time.sleep(1.0)
    failed = [view.job for view in views if view.job.status.phase is not Phase.COMPLETED]
    if failed:
        raise JobFailed("\n".join(f"{job.name} failed: {job.status.message}" for job in failed))
