"""`pdj watch`."""

from __future__ import annotations

import typer

from paddlejob.cli.options import Cluster, Context, JobName, Namespace


def command(name: JobName, namespace: Namespace = "", cluster: Cluster = None, context: Context = "") -> None:
    """Watch a job live: its progress, its loss, what its replicas use, and the end of a log.

    Press q or Ctrl-C to stop watching; the job goes on. The exit status is 1 if the job fails.

    \b
    Example:
      pdj watch wide-and-deep
    """
    from paddlejob.cli.run.attach import watch_jobs
    from paddlejob.targets.choose import choose_target

    target = choose_target(cluster, context)
    raise typer.Exit(watch_jobs(target, [(namespace or target.default_namespace, name)]))
