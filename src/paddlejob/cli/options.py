"""Options that several verbs share."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any

import typer

from paddlejob import contract
from paddlejob.cli.completion import complete_jobs
from paddlejob.errors import BadInput

AFTER_DASHES = "paddlejob.after_dashes"
"""Where click's context keeps the part of the command line after `--`."""


OPTIONS = {"images": "--image", "servers": "--ps", "volumes": "--volume"}
"""Arguments of the Python API whose options have other names."""


def option_of(argument: str) -> str:
    """The option that means the same as an argument of the Python API."""
    return OPTIONS.get(argument, f"--{argument}")


class Output(StrEnum):
    table = "table"
    wide = "wide"
    json = "json"
    yaml = "yaml"


class SeriesOutput(StrEnum):
    table = "table"
    csv = "csv"
    json = "json"


def machine_readable(value: Any, output: Output) -> str | None:
    """The value as `-o json` or `-o yaml` prints it; None for the formats that people read."""
    from paddlejob.client.describe.formats import to_json, to_yaml

    if output is Output.json:
        return to_json(value)
    return to_yaml(value) if output is Output.yaml else None


def parse_duration(option: str, text: str) -> float:
    """Seconds, from `90s`, `10m`, `1h30m` or `2d`."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    if not re.fullmatch(r"(\d+[smhd])+", text):
        raise BadInput(f"{option} {text} is not a duration; write it as 30s, 10m, 2h or 1d")
    return float(sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)([smhd])", text)))


def check_namespace(value: str) -> str:
    """A namespace becomes part of a path on this machine and of a URL in a cluster."""
    if value and not re.fullmatch(contract.DNS_LABEL, value):
        raise BadInput(
            f"--namespace {value} is not a valid namespace; use lower-case letters, digits and '-', start and end "
            "with a letter or digit, and use at most 63 characters"
        )
    return value


def check_job_name(value: str) -> str:
    """The same for the name of a job."""
    if "/" in value or value.startswith("."):
        raise BadInput(f"{value} is not a valid job name; list the jobs with `pdj list`")
    return value


JobName = Annotated[
    str,
    typer.Argument(help="Name of the job.", metavar="JOB", callback=check_job_name, autocompletion=complete_jobs),
]
JobFiles = Annotated[list[str], typer.Argument(help="Job files; - reads standard input.", metavar="FILE")]
Namespace = Annotated[
    str,
    typer.Option("--namespace", "-n", help="Namespace of the job.", metavar="NAMESPACE", callback=check_namespace),
]
Format = Annotated[
    Output, typer.Option("--output", "-o", help="Output format: table, wide, json or yaml.", metavar="FORMAT")
]
PlainFormat = Annotated[
    Output, typer.Option("--output", "-o", help="Output format: table, json or yaml.", metavar="FORMAT")
]
"""Of verbs whose table has no wide form."""
Python = Annotated[
    str,
    typer.Option(
        help="Python to train with: a path, a directory with an environment, or the name of a conda environment. "
        "Defaults to that of the active environment.",
        metavar="PYTHON",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the objects without sending them.")]

Cluster = Annotated[
    bool | None,
    typer.Option(
        "--cluster/--local",
        help="Use the cluster of the current kubeconfig context, or this machine. Defaults to `pdj target`.",
        show_default=False,
    ),
]
Context = Annotated[str, typer.Option("--context", help="Use the cluster of this kubeconfig context.", metavar="NAME")]
HiddenCluster = Annotated[bool, typer.Option("--cluster", hidden=True)]
"""Accepted by verbs that always talk to a cluster."""
