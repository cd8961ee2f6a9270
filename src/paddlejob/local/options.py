"""How a user wants a job to run on this machine: directories for its images and claims, and the Python to use."""

from __future__ import annotations

import os
import sys
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
    environment: dict[str, str] | None = field(default=None, repr=False)
    """The user's environment when the job was run; None for jobs of version 0.1, which did not record it."""
    objects: tuple[dict[str, Any], ...] = ()
    """ConfigMaps, Secrets, volumes and claims of the same file."""

    @property
    def interpreter(self) -> str:
        """The Python of the option, else of the active virtual environment, else the one that runs pdj."""
        active = os.environ.get("VIRTUAL_ENV")
        if self.python or not active:
            return self.python or sys.executable
        return str(Path(active, "bin", "python"))

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
