"""`pdj list`, `pdj get` and `pdj why`: the verbs that show jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlejob.cli.options import (
    Cluster,
    Context,
    Format,
    JobName,
    Namespace,
    Output,
    PlainFormat,
    check_namespace,
    machine_readable,
)

if TYPE_CHECKING:
    from paddlejob.targets.sync import SyncTarget
    from paddlejob.targets.views import JobView


def list_jobs(
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help="List only the jobs in this namespace.",
            metavar="NAMESPACE",
            callback=check_namespace,
        ),
    ] = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List all namespaces, also if `pdj target` remembers one.")
    ] = False,
    history: Annotated[
        bool,
        typer.Option("--history", help="List the runs on this machine whose logs are kept, including previous ones."),
    ] = False,
    phase: Annotated[
        list[str] | None,
        typer.Option("--phase", help="List only the jobs in this phase. Repeatable.", metavar="PHASE"),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="List only the newest N jobs.", metavar="N", min=1)] = None,
    output: Format = Output.table,
    cluster: Cluster = None,
    context: Context = "",
) -> None:
    """List the jobs in all namespaces, or in one: that of -n, else the one that `pdj target` remembers.

    The newest comes first.

    \b
    Example:
      pdj list -o wide
      pdj list --phase Running --phase Pending
    """
    from paddlejob.cli.output.tables import job_table
    from paddlejob.client.describe.formats import as_list
    from paddlejob.targets.choose import choose_target

    target = choose_target(cluster, context)
    if not all_namespaces:
        namespace = namespace or target.remembered_namespace
    if history:
        _list_runs(target, namespace, output)
        return
    every = _newest_first(target.jobs(namespace or None), phase or [])
    views = every[:limit]
    text = machine_readable(as_list([view.document for view in views]), output)
    if text is not None:
        typer.echo(text, nl=False)
    elif not views:
        start = f"No jobs found; start one with `{target.start_command(namespace)}`."
        typer.echo(f"No job is {' or '.join(phase)}." if phase else start, err=True)
    else:
        typer.echo(job_table(views, output is Output.wide, namespace or target.default_namespace))
    if text is None:
        if len(every) > len(views):
            typer.echo(f"{len(every) - len(views)} older jobs are not shown (--limit {limit})", err=True)
        _show_target(target, namespace)
    for view in views:
        if view.damaged:
            typer.echo(f"note: {view.job.name}: {view.note}", err=True)


def _newest_first(views: list[JobView], phases: list[str]) -> list[JobView]:
    from paddlejob.errors import BadInput
    from paddlejob.targets.views import PHASES

    wanted = {phase.lower() for phase in phases}
    if unknown := sorted(wanted - {phase.lower() for phase in PHASES}):
        raise BadInput(f"--phase: {unknown[0]!r} is not one of {', '.join(PHASES)}")
    chosen = [view for view in views if not wanted or view.phase.lower() in wanted]
    return sorted(chosen, key=lambda view: str(view.job.metadata.creationTimestamp or ""), reverse=True)


def _list_runs(target: SyncTarget, namespace: str, output: Output) -> None:
    from paddlejob.cli.output.tables import run_data, run_table
    from paddlejob.client.runs import runs
    from paddlejob.errors import BadInput
    from paddlejob.targets.local.local_target import LocalTarget

    if not isinstance(target.target, LocalTarget):
        raise BadInput(
            "--history: a cluster keeps no previous runs; list those of this machine with `pdj list --history --local` "
            "and keep the logs of a job on a cluster with `pdj logs -f JOB --save DIR`"
        )
    found = runs(target.target, namespace or None)
    text = machine_readable([run_data(run) for run in found], output)
    if text is None and not found:
        typer.echo(f"No runs found; start one with `{target.start_command(namespace)}`.", err=True)
    else:
        typer.echo(run_table(found) if text is None else text, nl=text is None)
    if text is None:
        _show_target(target, namespace)


def _show_target(target: SyncTarget, namespace: str) -> None:
    """Below a list, on standard error, so that it is in no pipe."""
    shown = f"namespace {namespace}" if namespace else "all namespaces"
    address = target.target.address
    title = address if target.target.name == "local" else f"cluster at {address}"
    typer.echo(f"target: {title}, {shown}; change it with `pdj target`", err=True)


def get(
    name: JobName,
    namespace: Namespace = "",
    output: PlainFormat = Output.table,
    cluster: Cluster = None,
    context: Context = "",
) -> None:
    """Show a job, its progress, its replicas, and on this machine their process IDs and logs.

    \b
    Example:
      pdj get wide-and-deep -o yaml
    """
    from paddlejob.api.types import Phase
    from paddlejob.cli.output.tables import job_page
    from paddlejob.targets.choose import choose_target

    target = choose_target(cluster, context)
    view = target.job(namespace or target.default_namespace, name)
    text = machine_readable(view.document, output)
    if text is None:
        running = view.job.status.phase is Phase.RUNNING
        typer.echo(job_page(view, target.last_output(view) if running else None))
    else:
        typer.echo(text, nl=False)


def why(
    name: JobName,
    namespace: Namespace = "",
    output: PlainFormat = Output.table,
    cluster: Cluster = None,
    context: Context = "",
) -> None:
    """Explain the state of a job from its status, events and logs, and suggest what to do next.

    \b
    Example:
      pdj why wide-and-deep
    """
    from paddlejob.client.describe.explain import as_data, explain
    from paddlejob.targets.choose import choose_target

    target = choose_target(cluster, context)
    view = target.job(namespace or target.default_namespace, name)
    last = target.last_output(view)
    text = machine_readable(as_data(view, last), output)
    typer.echo(str(explain(view, last)) if text is None else text, nl=text is None)
