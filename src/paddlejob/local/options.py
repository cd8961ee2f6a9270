"""How a user wants a file to be run on this machine: what its images and claims stand for, and which Python runs it."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class RunOptions:
    folder: str = ""
    """Where the job file lies: an image that nobody knows stands for this directory."""
    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: `directory`, and perhaps `command` and `workdir`."""
    volumes: dict[str, str] = field(default_factory=dict)
    """By claim, by server:path of an nfs, or by a path of this machine: a directory."""
    python: str = ""
    overcommit: bool = False
    """Run even if the job asks for more than this machine has."""
    objects: tuple[dict[str, Any], ...] = ()
    """ConfigMaps, Secrets, volumes and claims that stood in the same file."""

    @property
    def interpreter(self) -> str:
        """The user's own Python: that of an active virtual environment, else the one that runs pdj."""
        active = os.environ.get("VIRTUAL_ENV")
        if self.python or not active:
            return self.python or sys.executable
        return str(Path(active, "bin", "python"))

    @property
    def places(self) -> dict[str, str]:
        """Paths of this machine that other directories stand for, as hostPath and in the programs' eyes."""
        return {name: directory for name, directory in self.volumes.items() if name.startswith("/")}

    def object(self, kind: str, name: str) -> dict[str, Any] | None:
        return next((one for one in self.objects if one["kind"] == kind and one["metadata"]["name"] == name), None)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any] | None) -> Self:
        known = stored or {}
        return cls(**{**known, "objects": tuple(known.get("objects", ()))})
