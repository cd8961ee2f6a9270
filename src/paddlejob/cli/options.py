"""Options that several verbs share, spelled once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Output(StrEnum):
    table = "table"
    wide = "wide"
    json = "json"
    yaml = "yaml"


JobName = Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The job's namespace.")]
Cluster = Annotated[bool, typer.Option("--cluster", help="On the cluster of the current context, not here.")]
Context = Annotated[str, typer.Option("--context", help="On the cluster of this context of the kubeconfig.")]
Format = Annotated[Output, typer.Option("--output", "-o", help="How to print it.")]
