"""What `pdj run`, `plan` and `submit` name on the command line: job files, or a program without one."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlejob import contract
from paddlejob.cli.options import AFTER_DASHES, Output, check_job_name
from paddlejob.errors import BadInput

if TYPE_CHECKING:
    from paddlejob.api.program import Overrides, Program
    from paddlejob.client.start.check import Checked
    from paddlejob.client.start.load import Loaded

Object = dict[str, Any]
ENDINGS = (".py", ".sh")

Files = Annotated[
    list[str] | None,
    typer.Argument(help="Job files, or one program (.py, .sh); - reads standard input.", metavar="FILE"),
]
Module = Annotated[str, typer.Option("--module", "-m", help="Train this Python module.", metavar="MODULE")]
Name = Annotated[
    str,
    typer.Option(
        "--name", help="Name of the job. Defaults to that of the program.", metavar="NAME", callback=check_job_name
    ),
]
Workers = Annotated[
    int | None, typer.Option("--workers", help="Number of workers.", min=1, max=contract.MOST_REPLICAS, metavar="N")
]
Servers = Annotated[
    int | None,
    typer.Option("--ps", help="Number of parameter servers.", min=1, max=contract.MOST_REPLICAS, metavar="N"),
]
Gpus = Annotated[int | None, typer.Option("--gpus", help="NVIDIA GPUs of each worker.", min=0, metavar="N")]
Devices = Annotated[
    str, typer.Option("--devices", help="Devices of each worker, such as xpu:8 or npu:1.", metavar="KIND:N")
]
Environment = Annotated[
    list[str] | None,
    typer.Option("--env", help="Environment variable; without a value, that of this shell. Repeatable.", metavar="K=V"),
]
Image = Annotated[
    str,
    typer.Option(
        "--image", help="Image of the job. Defaults to the setting `image`, or Paddle's own.", metavar="IMAGE"
    ),
]
Claims = Annotated[
    list[str] | None,
    typer.Option(
        "--volume", help="Mount the volume claim NAME at PATH, by default /mnt/NAME. Repeatable.", metavar="NAME=PATH"
    ),
]
Queue = Annotated[
    str,
    typer.Option(
        "--queue",
        help="Queue in which the job waits for quota: Kueue's, or Volcano's if it asks for that.",
        metavar="QUEUE",
    ),
]
Save = Annotated[str, typer.Option("--save", help="Also write the job to this file.", metavar="FILE")]


def arguments(invocation: typer.Context) -> tuple[str, ...]:
    """What follows `--`: arguments of the program, or a command."""
    return tuple(invocation.meta.get(AFTER_DASHES, ()))


def load(
    files: list[str],
    module: str,
    after: tuple[str, ...],
    wanted: Overrides,
    claims: Iterable[str] = (),
    image: Callable[[], str] = lambda: "",
    batch_jobs: bool = False,
) -> list[Loaded]:
    """The job files with what the options change, or the job of the program, with its claims and default image."""
    from paddlejob.api.program import MOUNT_ROOT
    from paddlejob.client.start.load import load_file, load_program

    program = _program(files, module, after)
    if program is None:
        return [load_file(name, wanted, batch_jobs) for name in files]
    mounted = {name: f"{MOUNT_ROOT}/{name}" for name in claims if not name.startswith("/")}
    wanted = replace(wanted, image=wanted.image or image(), claims={**mounted, **wanted.claims})
    return [load_program(program, files[0] if files else module or " ".join(after[:2]), wanted)]


def _program(files: list[str], module: str, after: tuple[str, ...]) -> Program | None:
    from paddlejob.api.program import python_file, python_module, shell_command
    from paddlejob.client.files import check_program

    programs = [name for name in files if name.endswith(ENDINGS)]
    if (programs or module) and len(files) + bool(module) > 1:
        raise BadInput(f"{', '.join([*files, module]).strip(', ')}: name one program, or job files, in one command")
    if module:
        return python_module(module, after)
    if programs:
        check_program(programs[0])
        return python_file(programs[0], after)
    if files and after:
        raise BadInput(f"-- {' '.join(after)}: only a program takes arguments; change the command in the job file")
    if after:
        return shell_command(after)
    if not files:
        raise BadInput("name a job file or a program, such as `pdj run job.yaml` or `pdj run train.py --workers 2`")
    return None


def environment(values: list[str]) -> dict[str, str]:
    """The values of --env; a name without a value takes it from this process."""
    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name):
            raise BadInput(f"--env {value} must have the form NAME=VALUE")
        if not equals and name not in os.environ:
            raise BadInput(f"--env {name} is not set here; give it a value with --env {name}=VALUE")
        found[name] = text if equals else os.environ[name]
    return found


def claims(values: list[str]) -> dict[str, str]:
    """The values of --volume on a cluster: claims, and where each is mounted if that is given."""
    found = {}
    for value in values:
        name, _, path = value.partition("=")
        if not re.fullmatch(contract.DNS_LABEL, name) or (path and not path.startswith("/")):
            raise BadInput(f"--volume {value} must have the form CLAIM or CLAIM=/PATH")
        found[name] = path
    return found


def image_name(values: list[str]) -> str:
    """The only value of --image that is a name and no NAME=DIR; empty if there is none."""
    from paddlejob.client.files import check_image

    named = [check_image(one) for one in values if "=" not in one]
    if len(named) > 1:
        raise BadInput(f"--image {named[1]}: all workers have one image; name only {named[0]}, or write NAME=DIR")
    return "".join(named)


def directories(option: str, values: list[str]) -> dict[str, str]:
    """The values of a repeatable option NAME=DIR; every directory must exist."""
    from paddlejob.client.files import existing_directory

    found = {}
    for value in values:
        name, equals, directory = value.rpartition("=")
        if not equals or not name or not directory:
            raise BadInput(f"{option} {value} must have the form NAME=DIR")
        found[name] = existing_directory(f"{option} {value}", directory)
    return found


def warn(checked: Checked) -> None:
    for warning in checked.warnings:
        typer.echo(f"warning: {warning}", err=True)


def save_or_print(loaded: list[Loaded], save: str, output: Output | None) -> None:
    """Write the jobs to the file of --save, and print them if a format is given."""
    from paddlejob.client.describe.formats import to_yaml
    from paddlejob.client.files import check_new_file, write_file

    documents = [document for one in loaded for document in one.objects]
    if save:
        write_file(check_new_file(save, force=None), to_yaml(*documents))
        file = shlex.quote(save)
        typer.echo(f"wrote {save}; run it with `pdj run {file}`, or with `pdj submit {file} --image IMAGE`", err=True)
    if output is not None:
        print_objects(documents, output)


def print_objects(documents: list[Object], output: Output) -> None:
    from paddlejob.client.describe.formats import as_list, to_json, to_yaml

    json = to_json(documents[0] if len(documents) == 1 else as_list(documents))
    typer.echo(json if output is Output.json else to_yaml(*documents), nl=False)
