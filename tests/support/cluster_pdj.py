"""The command `pdj` as a user of a cluster types it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from testbed.controlplane import ControlPlane

START = [sys.executable, "-m", "paddlejob"]
PATIENCE = 240.0


class ClusterPdj:
    def __init__(self, plane: ControlPlane, folder: Path, kubeconfig: Path | None = None) -> None:
        self.folder = folder
        self.kubectl = plane.kubectl_path
        self.environment = {
            **plane.environment(),
            "KUBECONFIG": str(kubeconfig or plane.kubeconfig),
            "PADDLEJOB_STATE": str(folder / "state"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "COLUMNS": "200",
        }

    def write(self, *documents: dict[str, Any], name: str = "job.yaml") -> str:
        path = self.folder / name
        path.write_text(yaml.safe_dump_all(documents))
        return str(path)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._started([*START, *words])

    def plugin(self, *words: str) -> subprocess.CompletedProcess[str]:
        """As `kubectl pdj`."""
        return self._started([str(self.kubectl), "pdj", *words])

    async def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """For stories in which something else goes on meanwhile."""
        return await asyncio.to_thread(self.run, *words)

    def _started(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
