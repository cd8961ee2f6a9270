"""The command `pdj` as a user of a cluster runs it."""

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

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run([*START, *arguments])

    def plugin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it as `kubectl pdj`."""
        return self._run([str(self.kubectl), "pdj", *arguments])

    async def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it in a thread, so that the test can go on."""
        return await asyncio.to_thread(self.run, *arguments)

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
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
