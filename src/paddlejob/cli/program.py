"""What `pdj run` and `pdj submit` name on the command line: job files, or a program without one."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any

import typer

from paddlejob import contract
from paddlejob.api.program import (
    MOUNT_ROOT,
    Overrides,
    Program,
    job_of_program,
    overridden,
    python_file,
    python_module,
    shell_command,
)
from paddlejob.cli.options import AFTER_DASHES, Output, check_job_name
from paddlejob.client.files import check_image, check_program, is_paddle_job, objects_in
from paddlejob.client.given import Given
from paddlejob.errors import BadInput

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
Gpus = Annotated[int | None, typer.Option("--gpus", help="GPUs of each worker.", min=0, metavar="N")]
Environment = Annotated[
    list[str] | None,
    typer.Option("--env", help="Environment variable; without a value, that of this shell. Repeatable.", metavar="K=V"),
]
Save = Annotated[str, typer.Option("--save", help="Also write the job to this file.", metavar="FILE")]


def arguments(invocation: typer.Context) -> tuple[str, ...]:
    """What follows `--`: arguments of the program, or a command."""
    return tuple(invocation.meta.get(AFTER_DASHES, ()))


def given(
    files: list[str],
    module: str,
    after: tuple[str, ...],
    wanted: Overrides,
    claims: Iterable[str] = (),
    image: Callable[[], str] = lambda: "",
) -> Given:
    """The job files with what the options change, or the job of the program, with its claims and default image."""
    program = _program(files, module, after)
    if program is None:
        return Given(files, lambda name: [_changed(one, wanted) for one in objects_in(name)])
    mounted = {name: f"{MOUNT_ROOT}/{name}" for name in claims if not name.startswith("/")}
    wanted = replace(wanted, image=wanted.image or image(), claims={**mounted, **wanted.claims})
    document = job_of_program(program, wanted)
    return Given([files[0] if files else module or " ".join(after[:2])], lambda _: [document], program)


def _program(files: list[str], module: str, after: tuple[str, ...]) -> Program | None:
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


def _changed(document: Object, wanted: Overrides) -> Object:
    if not is_paddle_job(document) or wanted == Overrides():
        return document
    spec = document.get("spec")
    if wanted.servers and isinstance(spec, dict) and "ps" not in spec:
        raise BadInput("--ps: the job has no parameter servers; add spec.ps to its file")
    return overridden(document, wanted)


def environment(values: list[str]) -> dict[str, str]:
    """The values of --env; a name without a value takes it from this process."""
    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name):
            raise BadInput(f"--env {value}: must have the form NAME=VALUE")
        if not equals and name not in os.environ:
            raise BadInput(f"--env {name}: is not set here; give it a value with --env {name}=VALUE")
        found[name] = text if equals else os.environ[name]
    return found


def claims(values: list[str]) -> dict[str, str]:
    """The values of --volume on a cluster: claims, and where each is mounted if that is given."""
    found = {}
    for value in values:
        name, _, path = value.partition("=")
        if not re.fullmatch(contract.DNS_LABEL, name) or (path and not path.startswith("/")):
            raise BadInput(f"--volume {value}: must have the form CLAIM or CLAIM=/PATH")
        found[name] = path
    return found


def image_name(values: list[str]) -> str:
    """The only value of --image that is a name and no NAME=DIR; empty if there is none."""
    named = [check_image("--image", one) for one in values if "=" not in one]
    if len(named) > 1:
        raise BadInput(f"--image {named[1]}: all workers have one image; name only {named[0]}, or write NAME=DIR")
    return "".join(named)


def save_or_print(chosen: Given, save: str, output: Output | None) -> None:
    """Write the jobs to the file of --save, and print them if a format is given."""
    from paddlejob.client.describe.formats import as_list, to_json, to_yaml
    from paddlejob.client.files import check_new_file, write_file

    path = check_new_file(save, force=None) if save else None
    documents = [one for name in chosen.names for one in chosen.load(name)]
    if path:
        write_file(path, to_yaml(*documents))
        file = shlex.quote(save)
        typer.echo(f"wrote {save}; run it with `pdj run {file}`, or with `pdj submit {file} --image IMAGE`", err=True)
    if output is Output.json:
        typer.echo(to_json(documents[0] if len(documents) == 1 else as_list(documents)), nl=False)
    elif output is not None:
        typer.echo(to_yaml(*documents), nl=False)
