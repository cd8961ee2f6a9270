"""`pdj submit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import Context

if TYPE_CHECKING:
    from paddlejob.cli.submit.files import Submission
    from paddlejob.cli.targets.cluster import ClusterTarget


def command(
    files: Annotated[list[str], typer.Argument(help="Job files; - is standard input.", metavar="FILE")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="For what names no namespace.")] = "",
    context: Context = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the jobs have ended; 0 if all completed.")] = False,
) -> None:
    """Train the jobs of a file on a cluster. Other objects of the file are created or changed before them.

    Example: pdj submit job.yaml -n training --wait
    """
    import sys

    from paddlejob.cli.submit.files import read_submission
    from paddlejob.cli.targets.cluster import ClusterTarget
    from paddlejob.cli.yaml_text import to_yaml

    documents = read_submission(files, namespace)
    place = ClusterTarget(context)
    submission = documents.in_namespace(namespace or place.default_namespace)
    if dry_run:
        sys.stdout.write(to_yaml(*submission.documents))
        return
    _submit(place, submission)
    if wait:
        _wait(place, submission)


def _submit(place: ClusterTarget, submission: Submission) -> None:
    from paddlejob.cli.install.operators import asleep, find_operators, unwatched
    from paddlejob.cli.submit.apply import send

    for done in place.asked(lambda client: send(client, submission, place)):
        typer.echo(done)
    operators = place.asked(find_operators)
    for namespace in dict.fromkeys(key[0] for key in submission.jobs):
        trouble = unwatched(operators, namespace, place.flags()) or asleep(operators, namespace)
        if trouble:
            typer.echo(f"warning: {trouble}", err=True)
    for namespace, name in submission.jobs:
        flags = place.flags(namespace)
        typer.echo(f"next: `pdj why {name}{flags}`, `pdj logs -f {name}{flags}`, `pdj delete {name}{flags}`")


def _wait(place: ClusterTarget, submission: Submission) -> None:
    import time

    from paddlejob.api.types import Phase
    from paddlejob.cli.run.plain import PlainScreen
    from paddlejob.errors import JobFailed

    screen = PlainScreen()
    while True:
        views = [place.job(*key) for key in submission.jobs]
        screen.show(views)
        if all(view.job.status.finished for view in views):
            break
        time.sleep(1.0)
    failed = [view.job for view in views if view.job.status.phase is not Phase.COMPLETED]
    if failed:
        raise JobFailed("\n".join(f"job {job.name} failed: {job.status.message}" for job in failed))
