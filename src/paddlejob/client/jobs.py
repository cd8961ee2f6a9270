"""Jobs as values: made from a program or read from a file, then run or submitted as often as needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlejob.api.devices import DeviceRequest, request_devices
from paddlejob.api.program import MOUNT_ROOT, Overrides, job_of_program, overridden, python_file
from paddlejob.client.files import check_image, check_program, existing_directory, is_paddle_job
from paddlejob.client.start.load import Loaded, load_file
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
    source: str = ""
    """The file that describes it."""
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
    devices: DeviceRequest | None = None
    """Of each worker."""

    @property
    def name(self) -> str:
        return str((self.document.get("metadata") or {}).get("name") or "")

    def loaded(self, image: str = "") -> Loaded:
        """As the first step of starting it; `image` is that of a program for which none was asked."""
        document = overridden(self.document, Overrides(image=image)) if image else self.document
        program = python_file(self.program) if self.program else None
        return Loaded(self.source or self.name or "job", (*self.others, document), self.directory, program)

    def to_yaml(self) -> str:
        from paddlejob.client.describe.formats import to_yaml

        return to_yaml(*self.others, self.document)


def collective(
    program: AnyPath,
    arguments: Sequence[AnyPath] = (),
    *,
    workers: int = 1,
    gpus: int = 0,
    devices: str = "",
    image: str = "",
    code: AnyPath = "",
    name: str = "",
    env: Mapping[str, AnyPath] | None = None,
    volumes: Mapping[str, AnyPath] | None = None,
) -> Job:
    """A job whose workers train together. `devices` are those of each worker, such as "xpu:8"; `gpus` are NVIDIA's.

    `volumes` are directories of this machine by claim, mounted at /mnt/CLAIM.
    """
    requested = request_devices(gpus or None, devices)
    wanted = Overrides(name, workers, None, requested, image, "", _variables(env), _mounts(volumes))
    return _of_program(program, arguments, wanted, code, volumes)


def parameter_server(
    program: AnyPath,
    arguments: Sequence[AnyPath] = (),
    *,
    servers: int = 1,
    workers: int = 1,
    gpus: int = 0,
    devices: str = "",
    image: str = "",
    code: AnyPath = "",
    name: str = "",
    env: Mapping[str, AnyPath] | None = None,
    volumes: Mapping[str, AnyPath] | None = None,
) -> Job:
    """A job with parameter servers; servers and workers run the same program."""
    requested = request_devices(gpus or None, devices)
    wanted = Overrides(name, workers, servers, requested, image, "", _variables(env), _mounts(volumes))
    return _of_program(program, arguments, wanted, code, volumes)


def load(path: AnyPath) -> Job:
    """The job in a file; a file with several jobs is rejected."""
    path = os.fspath(path)
    loaded = load_file(path)
    if loaded.error:
        raise loaded.error
    if len(loaded.jobs) > 1:
        raise BadInput(f"{path} contains {len(loaded.jobs)} jobs; put each into a file of its own")
    others = tuple(one for one in loaded.objects if not is_paddle_job(one))
    return Job(loaded.jobs[0], directory=loaded.directory, source=loaded.source, others=others)


def _of_program(
    program: AnyPath,
    arguments: Sequence[AnyPath],
    wanted: Overrides,
    code: AnyPath,
    volumes: Mapping[str, AnyPath] | None,
) -> Job:
    program = os.fspath(program)
    check_program(program)
    check_image(wanted.image)
    if isinstance(arguments, str):
        raise BadInput(f"arguments: {arguments!r} is not a list; write {arguments.split()!r}")
    document = job_of_program(python_file(program, tuple(map(_text, arguments))), wanted)
    return Job(
        document,
        directory=str(Path.cwd()),
        source=program,
        program=program,
        code=os.fspath(code),
        volumes={name: existing_directory(f"volumes[{name!r}]", one) for name, one in (volumes or {}).items()},
        image=wanted.image,
        devices=wanted.devices,
    )


def _variables(given: Mapping[str, AnyPath] | None) -> dict[str, str]:
    return {name: _text(value) for name, value in (given or {}).items()}


def _text(value: Any) -> Any:
    """A path as text; everything else is left to validation."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _mounts(volumes: Mapping[str, AnyPath] | None) -> dict[str, str]:
    return {name: f"{MOUNT_ROOT}/{name}" for name in volumes or {}}
