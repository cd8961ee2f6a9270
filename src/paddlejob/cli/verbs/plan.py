"""`pdj plan` and `pdj crd`: the verbs that print objects without creating them."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlejob.cli import program as programs
from paddlejob.cli.options import check_namespace


def plan(
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
    queue: programs.Queue = "",
    engine: Annotated[
        str, typer.Option(help="Engine: kubernetes, or local for `pdj run`.", metavar="ENGINE")
    ] = "kubernetes",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", help="Namespace of jobs that set none.", metavar="NAMESPACE", callback=check_namespace
        ),
    ] = "",
) -> None:
    """Print the objects and the environment that a program or the jobs in files would get, without creating them.

    Pod addresses are examples, because real ones are assigned when the pods run.

    \b
    Example:
      pdj plan job.yaml
      pdj plan train.py --workers 2
    """
    from paddlejob.api.devices import request_devices
    from paddlejob.api.fault import Severity
    from paddlejob.api.program import Overrides
    from paddlejob.api.types import PaddleJob
    from paddlejob.client.describe.formats import to_yaml
    from paddlejob.client.files import check_image
    from paddlejob.client.planned import EXAMPLE_ADDRESSES, planned_objects
    from paddlejob.client.settings import default_image
    from paddlejob.client.start.check import check
    from paddlejob.errors import BadInput

    if engine not in EXAMPLE_ADDRESSES:
        raise BadInput(f"--engine {engine} is not an engine; use {' or '.join(EXAMPLE_ADDRESSES)}")
    on_cluster = engine == "kubernetes"
    requested, variables = request_devices(gpus, devices), programs.environment(env or [])
    claims = programs.claims(volume or [])
    wanted = Overrides(name, workers, servers, requested, check_image(image), queue, variables, claims)
    after, default = programs.arguments(invocation), lambda: default_image(requested) if on_cluster else ""
    loaded = programs.load(files or [], module, after, wanted, image=default, batch_jobs=not on_cluster)
    named = [one.in_namespace(namespace) for one in loaded]
    checked = check(named, cluster=Severity.WARNING if on_cluster else None, namespace=namespace)
    programs.warn(checked)
    for document in (job for one in checked.loaded for job in one.jobs):
        typer.echo("---\n" + to_yaml(*planned_objects(PaddleJob.model_validate(document), engine)), nl=False)


def crd() -> None:
    """Print the CustomResourceDefinition of PaddleJob.

    \b
    Example:
      pdj crd | kubectl create -f -
    """
    from paddlejob.api import crd as definition
    from paddlejob.client.describe.formats import to_yaml

    typer.echo(to_yaml(definition.crd()), nl=False)
