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
    from paddlejob.client.targets.target import Target


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
        bool, typer.Option("--history", help="List the runs on this machine whose logs are kept, also former ones.")
    ] = False,
    output: Format = Output.table,
    cluster: Cluster = None,
    context: Context = "",
) -> None:
    """List the jobs in all namespaces, or in one: that of -n, else the one that `pdj target` remembers.

    \b
    Example:
      pdj list -o wide
    """
    from paddlejob.cli.output.tables import job_table
    from paddlejob.client.describe.formats import as_list
    from paddlejob.client.targets.target import choose_target

    target = choose_target(cluster, context)
    if not all_namespaces:
        namespace = namespace or target.remembered_namespace
    if history:
        _list_runs(target, namespace, output)
        return
    views = target.jobs(namespace or None)
    text = machine_readable(as_list([view.document for view in views]), output)
    if text is not None:
        typer.echo(text, nl=False)
    elif not views:
        typer.echo(f"No jobs found; start one with `{target.start_command(namespace)}`.", err=True)
    else:
        typer.echo(job_table(views, output is Output.wide, namespace or target.default_namespace))
    if text is None:
        _show_target(target, namespace)
    for view in views:
        if view.damaged:
            typer.echo(f"note: {view.job.name}: {view.note}", err=True)


def _list_runs(target: Target, namespace: str, output: Output) -> None:
    from paddlejob.cli.output.tables import run_data, run_table
    from paddlejob.client.runs import runs
    from paddlejob.client.targets.local import LocalTarget
    from paddlejob.errors import BadInput

    if not isinstance(target, LocalTarget):
        raise BadInput(
            "--history: a cluster keeps no former runs; list those of this machine with `pdj list --history --local`, "
            "and keep the logs of a job on a cluster with `pdj logs -f JOB --save DIR`"
        )
    found = runs(target, namespace or None)
    text = machine_readable([run_data(run) for run in found], output)
    if text is None and not found:
        typer.echo(f"No runs found; start one with `{target.start_command(namespace)}`.", err=True)
    else:
        typer.echo(run_table(found) if text is None else text, nl=text is None)
    if text is None:
        _show_target(target, namespace)


def _show_target(target: Target, namespace: str) -> None:
    """Below a list, on standard error, so that it is in no pipe."""
    shown = f"namespace {namespace}" if namespace else "all namespaces"
    typer.echo(f"target: {target.title}, {shown}; change it with `pdj target`", err=True)


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
    from paddlejob.client.targets.target import choose_target

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
    from paddlejob.client.targets.target import choose_target

    target = choose_target(cluster, context)
    view = target.job(namespace or target.default_namespace, name)
    last = target.last_output(view)
    text = machine_readable(as_data(view, last), output)
    typer.echo(str(explain(view, last)) if text is None else text, nl=text is None)
