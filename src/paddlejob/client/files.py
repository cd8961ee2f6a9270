"""Reading the files that a user names on the command line, and writing those that a verb produces."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paddlejob import contract
from paddlejob.api.convert import is_kubeflow_job
from paddlejob.api.documents import STDIN, decode, documents
from paddlejob.api.fault import line_of
from paddlejob.errors import BadArgument, BadFile, BadInput, NotPossible

Object = dict[str, Any]
CONVERTED = "converted.yaml"
PROGRAMS = {".py": "a Python program", ".sh": "a shell script", ".ipynb": "a notebook"}


def objects_in(name: str) -> list[Object]:
    """The Kubernetes objects in a file; `-` is standard input."""
    if name == "-":
        content = sys.stdin.buffer.read() if sys.stdin else b""
        return [*documents(decode(content, STDIN), STDIN)]
    path = Path(name)
    if not name or not path.exists():
        raise BadFile(name, "no such file")
    if path.is_dir():
        raise BadFile(name, _directory_problem(path))
    if path.suffix in PROGRAMS:
        raise BadFile(name, f"is {PROGRAMS[path.suffix]}, not a job file; {_how_to_run(path)}")
    try:
        return [*documents(decode(path.read_bytes(), name), name)]
    except OSError as error:
        raise BadFile(name, f"cannot be read: {error.strerror}") from None


def _directory_problem(path: Path) -> str:
    """Names the job file in a directory, or how to create one for the program in it."""
    files = sorted(str(file) for ending in ("yaml", "yml") for file in path.glob(f"*.{ending}"))
    if files:
        return f"is a directory; name a job file, such as {files[0]}"
    programs = [path / "train.py", path / "main.py", *sorted(path.glob("*.py"))]
    program = next((file for file in programs if file.is_file()), None)
    create = f"create one with `pdj init -o {shlex.quote(str(path / 'job.yaml'))}`"
    return f"is a directory without a job file; {_how_to_run(program) if program else create}"


def _how_to_run(program: Path) -> str:
    """The commands that run a program."""
    if program.suffix == ".ipynb":
        return "save the notebook as a Python program first"
    return f"train it with `pdj run {shlex.quote(str(program))}`; --save writes a job file"


def jobs_in(name: str, objects: Sequence[Object]) -> list[Object]:
    """The PaddleJobs among the objects of a file; raises BadInput if there are none, or if one is Kubeflow's."""
    jobs = [document for document in objects if is_paddle_job(document)]
    if not jobs:
        raise no_job_in(name, objects)
    for job in jobs:
        if is_kubeflow_job(job):
            raise kubeflow_job_in(name, job)
    return jobs


def kubeflow_job_in(name: str, job: Object) -> BadFile:
    """The error for a PaddleJob of Kubeflow's training operator."""
    command = f"pdj convert {shlex.quote(name)} -o {CONVERTED}"
    problem = f"{job['apiVersion']} is the PaddleJob of Kubeflow; convert it with `{command}`"
    return BadFile(name, f"apiVersion: {problem}", line_of(job, ("apiVersion",)))


def no_job_in(name: str, objects: Sequence[Object]) -> BadFile:
    """The error for a file without a PaddleJob."""
    kinds = [str(document.get("kind") or "an object without kind") for document in objects]
    if "Job" in kinds:
        remedy = "run it with `pdj run` or kubectl, or turn it into a PaddleJob with `pdj convert`"
    elif difflib.get_close_matches(contract.KIND, kinds, 1):
        remedy = f"did you mean kind: {contract.KIND}?"
    else:
        remedy = "check kind and apiVersion, or create a job file with `pdj init`"
    return BadFile(name, f"contains no PaddleJob, only {', '.join(dict.fromkeys(kinds))}; {remedy}")


def is_paddle_job(document: Object) -> bool:
    return document.get("kind") == contract.KIND


def check_program(name: str) -> None:
    """Raise BadInput if a job cannot be made from this file."""
    path = Path(name)
    if not name or not path.exists():
        raise BadInput(f"{name!r}: no such file" if not name else f"{name}: no such file")
    if path.is_dir():
        raise BadInput(f"{name} is a directory; name the program in it")
    if not path.is_file():
        raise BadInput(f"{name} is not a file")
    if not os.access(path, os.R_OK):
        raise BadInput(f"{name} cannot be read: Permission denied; change its permissions")


def existing_directory(source: str, directory: str | os.PathLike[str]) -> str:
    """The absolute path of a directory that a user names; raises BadInput if there is none."""
    path = Path(directory).expanduser()
    if not path.is_dir():
        raise BadInput(f"{source}: {directory} is not a directory")
    return str(path.absolute())


def check_image(name: str) -> str:
    """The name of an image; raises BadInput for one that no image can have."""
    if name and not re.fullmatch(r"[^\s=]+", name):
        raise BadArgument("image", "is not the name of an image; it has no spaces and no '='", name)
    return name


def check_new_file(name: str, force: bool | None) -> Path:
    """The path of a file to write; raises BadInput if it exists, unless it may be overwritten.

    None is for commands that have no option --force.
    """
    path = Path(name)
    if path.exists() and not force:
        remedy = "remove it first" if force is None else "overwrite it with --force"
        raise BadInput(f"{name} already exists; choose another name or {remedy}")
    return path


def write_file(path: Path, text: str) -> None:
    """As a whole, so that a full disk leaves what was there before; a device or a pipe is written to."""
    special = path.exists() and not path.is_file()
    written = path if special else path.with_name(f".{path.name}.{os.getpid()}")
    try:
        written.write_text(text, encoding="utf-8")
        if not special:
            written.replace(path)
    except OSError as error:
        if not special:
            written.unlink(missing_ok=True)
        raise NotPossible(f"{path} cannot be written: {error.strerror}") from None
