"""`pdj operator`: the controller, as it runs in a cluster."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    namespace: Annotated[str, typer.Option(help="Watch only this namespace instead of all.", metavar="NAMESPACE")] = "",
    leader_elect: Annotated[
        bool, typer.Option("--leader-elect", help="Elect a leader, so that only one of several replicas is active.")
    ] = False,
    leader_namespace: Annotated[
        str,
        typer.Option(
            help="Namespace of the leader election lease. Defaults to that of the operator.", metavar="NAMESPACE"
        ),
    ] = "",
    lease_seconds: Annotated[
        float, typer.Option(help="Time after which an unresponsive leader loses the lease.", metavar="SECONDS")
    ] = 15.0,
    metrics_bind_address: Annotated[
        str, typer.Option(help="Address of the Prometheus metrics endpoint; 0 disables it.", metavar="ADDRESS")
    ] = ":8080",
    metrics_auth: Annotated[
        bool,
        typer.Option(
            "--metrics-auth", help="Serve metrics only to bearer tokens that the API server permits to get /metrics."
        ),
    ] = False,
    metrics_certificate: Annotated[
        str, typer.Option(help="Directory with tls.crt and tls.key, to serve metrics over HTTPS.", metavar="DIR")
    ] = "",
    health_probe_bind_address: Annotated[
        str, typer.Option(help="Address of the health probe endpoint; 0 disables it.", metavar="ADDRESS")
    ] = ":8081",
    kubeconfig: Annotated[
        str,
        typer.Option(
            help="Kubeconfig file. Defaults to KUBECONFIG, or to the service account of the pod.", metavar="FILE"
        ),
    ] = "",
    context: Annotated[str, typer.Option(help="Context of the kubeconfig.", metavar="NAME")] = "",
    read_logs: Annotated[
        bool,
        typer.Option(
            "--read-logs/--no-read-logs",
            help="Read the logs of running jobs, for their progress and for stallSeconds.",
        ),
    ] = True,
    job_metrics: Annotated[
        bool,
        typer.Option("--job-metrics", help="Expose metrics of each active job: steps, goodput, restarts."),
    ] = False,
    agent_url: Annotated[
        str,
        typer.Option(
            help="HTTPS address under which agents in pods reach this operator, for jobs with restartStrategy InPlace. "
            "Without it, jobs restart with new pods.",
            metavar="URL",
        ),
    ] = "",
    agent_bind_address: Annotated[
        str, typer.Option(help="Address on which agents are served, if --agent-url is set.", metavar="ADDRESS")
    ] = ":8443",
    log_format: Annotated[str, typer.Option(help="Log format: json or text.", metavar="FORMAT")] = "json",
) -> None:
    """Run the controller in the foreground.

    \b
    Example:
      pdj operator --namespace=paddle-system --leader-elect
    """
    import asyncio

    from paddlejob.errors import BadInput
    from paddlejob.kube.access import find_access
    from paddlejob.operator.log_format import set_up_logs
    from paddlejob.operator.main import Options, run

    if lease_seconds < 1:
        raise BadInput(f"--lease-seconds {lease_seconds:g}: use 1 or more")
    set_up_logs(log_format)
    options = Options(
        namespace=namespace or None,
        leader_elect=leader_elect,
        leader_namespace=leader_namespace,
        metrics=metrics_bind_address,
        probes=health_probe_bind_address,
        lease_seconds=lease_seconds,
        read_logs=read_logs,
        job_metrics=job_metrics,
        metrics_auth=metrics_auth,
        metrics_certificate=metrics_certificate,
        agent_url=agent_url,
        agent_bind_address=agent_bind_address,
    )
    access = find_access(kubeconfig or None, context or None)
    asyncio.run(run(access, options))
