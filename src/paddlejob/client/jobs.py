"""Jobs as values: made from a program or read from a file, then run or submitted as often as needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlejob.api.program import MOUNT_ROOT, Overrides, job_of_program, python_file
from paddlejob.client.files import check_image, check_program, existing_directory, is_paddle_job, jobs_in, objects_in
from paddlejob.errors import BadInput

Object = dict[str, Any]
AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Job:
    """A PaddleJob, and what it needs from this machine."""

    document: Object
    """The object as a file would hold it."""
    directory: str = ""
    """Where the program runs on this machine."""
    program: str = ""
    """The file of the program, if the job was made from one."""
    code: str = ""
    """The directory that is shipped to a cluster; empty: none."""
    others: tuple[Object, ...] = ()
    """Other objects of the same file."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Directories of this machine, by claim."""
    image: str = ""
    """The image that was asked for; empty: a default is chosen when the job is submitted."""
    gpus: int = 0

    @property
    def name(self) -> str:
        return str((self.document.get("metadata") or {}).get("name") or "")

    def to_yaml(self) -> str:
        from paddlejob.client.describe.formats import to_yaml

        return to_yaml(*self.others, self.document)


def collective(
    program: AnyPath,
    arguments: Sequence[str] = (),
    *,
    workers: int = 1,
    gpus: int = 0,
    image: str = "",
    code: AnyPath = "",
    name: str = "",
    env: Mapping[str, str] | None = None,
    volumes: Mapping[str, AnyPath] | None = None,
) -> Job:
    """A job whose workers train together. `volumes` are directories of this machine by claim, mounted at /mnt/CLAIM."""
    wanted = Overrides(name, workers, None, gpus or None, image, environment=env or {}, claims=_mounts(volumes))
    return _of_program(program, arguments, wanted, code, volumes)


def parameter_server(
    program: AnyPath,
    arguments: Sequence[str] = (),
    *,
    servers: int = 1,
    workers: int = 1,
    gpus: int = 0,
    image: str = "",
    code: AnyPath = "",
    name: str = "",
    env: Mapping[str, str] | None = None,
    volumes: Mapping[str, AnyPath] | None = None,
) -> Job:
    """A job with parameter servers; servers and workers run the same program."""
    wanted = Overrides(name, workers, servers, gpus or None, image, environment=env or {}, claims=_mounts(volumes))
    return _of_program(program, arguments, wanted, code, volumes)


def load(path: AnyPath) -> Job:
    """The job in a file; a file with several jobs is rejected."""
    path = os.fspath(path)
    objects = objects_in(path)
    jobs = jobs_in(path, objects)
    if len(jobs) > 1:
        raise BadInput(f"{path}: contains {len(jobs)} jobs; put each into a file of its own")
    others = tuple(one for one in objects if not is_paddle_job(one))
    return Job(jobs[0], directory=str(Path(path).absolute().parent), others=others)


def _of_program(
    program: AnyPath, arguments: Sequence[str], wanted: Overrides, code: AnyPath, volumes: Mapping[str, AnyPath] | None
) -> Job:
    program = os.fspath(program)
    check_program(program)
    check_image("image", wanted.image)
    if isinstance(arguments, str):
        raise BadInput(f"arguments: {arguments!r} is not a list; write {arguments.split()!r}")
    document = job_of_program(python_file(program, tuple(arguments)), wanted)
    return Job(
        document,
        directory=str(Path.cwd()),
        program=program,
        code=os.fspath(code),
        volumes={name: existing_directory(f"volumes[{name!r}]", one) for name, one in (volumes or {}).items()},
        image=wanted.image,
        gpus=wanted.gpus or 0,
    )


def _mounts(volumes: Mapping[str, AnyPath] | None) -> dict[str, str]:
    return {name: f"{MOUNT_ROOT}/{name}" for name in volumes or {}}
