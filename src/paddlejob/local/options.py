"""How a user wants a job to run on this machine: directories for its images and claims, and the Python to use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class RunOptions:
    folder: str = ""
    """The directory of the job file; an unknown image runs the code in it."""
    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: `directory`, and optionally `command` and `workdir`."""
    volumes: dict[str, str] = field(default_factory=dict)
    """Directories, by claim, by server:path of an NFS volume, or by a path of this machine."""
    python: str = ""
    overcommit: bool = False
    """Run even if the job requests more than this machine has."""
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    """The user's, when the job was run."""
    objects: tuple[dict[str, Any], ...] = ()
    """ConfigMaps, Secrets, volumes and claims of the same file."""

    @property
    def interpreter(self) -> str:
        """The Python of the option, else of the active environment, else the one that runs pdj."""
        return self.python or next(_active_pythons(), sys.executable)

    @property
    def host_paths(self) -> dict[str, str]:
        """Paths of this machine that are replaced by other directories, in hostPath volumes and inside pods."""
        return {name: directory for name, directory in self.volumes.items() if name.startswith("/")}

    def object(self, kind: str, name: str) -> dict[str, Any] | None:
        return next((one for one in self.objects if one["kind"] == kind and one["metadata"]["name"] == name), None)

    def to_json(self) -> dict[str, Any]:
        # Not asdict: it cannot copy the objects of a file, which are dicts that know their lines.
        return {**vars(self), "objects": [dict(one) for one in self.objects]}

    @classmethod
    def from_json(cls, stored: dict[str, Any] | None) -> Self:
        known = {} if stored is None else stored
        return cls(**{**known, "objects": tuple(known.get("objects", ()))})


def _active_pythons() -> Iterator[str]:
    """Of virtual and conda environments; the one that was activated last is found first, as its programs are.

    Conda's base is active in every shell of many users, whatever they work with, so it has to be named.
    """
    active = [os.environ.get("VIRTUAL_ENV")]
    conda = os.environ.get("CONDA_PREFIX")
    if conda and os.environ.get("CONDA_DEFAULT_ENV") != "base" and Path(conda, "bin", "python").exists():
        active.append(conda)
    folders = os.environ.get("PATH", "").split(os.pathsep)
    found = [Path(one, "bin") for one in active if one]
    found.sort(key=lambda one: folders.index(str(one)) if str(one) in folders else len(folders))
    return (str(one / "python") for one in found)
