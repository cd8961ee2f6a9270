"""`pdj operator`: the controller, as it runs in a cluster."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    namespace: Annotated[str, typer.Option(help="Watch this namespace only; all where absent.")] = "",
    leader_elect: Annotated[bool, typer.Option("--leader-elect", help="Of several replicas, let one work.")] = False,
    leader_namespace: Annotated[str, typer.Option(help="Where the lease lives; the operator's own.")] = "",
    lease_seconds: Annotated[float, typer.Option(help="How long a silent leader keeps the lease.")] = 15.0,
    metrics_bind_address: Annotated[str, typer.Option(help="Where Prometheus reads; 0 for nowhere.")] = ":8080",
    health_probe_bind_address: Annotated[str, typer.Option(help="Where probes ask; 0 for nowhere.")] = ":8081",
    kubeconfig: Annotated[str, typer.Option(help="A kubeconfig file; else KUBECONFIG or the pod's own.")] = "",
    context: Annotated[str, typer.Option(help="A context of the kubeconfig.")] = "",
    log_format: Annotated[str, typer.Option(help="json, or text for people.")] = "json",
) -> None:
    """Run the controller until it is stopped.

    Example: pdj operator --namespace=paddle-system --leader-elect
    """
    import asyncio

    from paddlejob.errors import BadInput
    from paddlejob.kube.access import find_access
    from paddlejob.operator.logs import set_up_logs
    from paddlejob.operator.main import Options, run

    if lease_seconds < 1:
        raise BadInput(f"--lease-seconds: is {lease_seconds:g}; use 1 or more")
    set_up_logs(log_format)
    options = Options(
        namespace=namespace or None,
        leader_elect=leader_elect,
        leader_namespace=leader_namespace,
        metrics=metrics_bind_address,
        probes=health_probe_bind_address,
        lease_seconds=lease_seconds,
    )
    access = find_access(kubeconfig or None, context or None)
    asyncio.run(run(access, options))
