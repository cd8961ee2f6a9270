"""Kueue, which admits jobs by quota, as a process beside a control plane."""

from __future__ import annotations

import http.client
import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testbed.addons.definitions import create_definitions
from testbed.build.binaries import Say, binaries, go
from testbed.build.gomod import source_directory
from testbed.build.recipes import recipe
from testbed.controlplane import ControlPlane
from testbed.network.ports import free_port
from testbed.process import Process

CERTIFICATES = "/etc/kueue/metrics/certs"
"""Without certificates of its own, Kueue reads those of its metrics from here and nowhere else."""
IN_ITS_OWN_ETC = (
    f'mount -t tmpfs kueue /etc && mkdir -p {CERTIFICATES} && cp "$1"/* {CERTIFICATES} && shift && exec "$@"'
)


class Kueue:
    """Installs Kueue without its webhooks while the context lasts: `with Kueue(plane): ...`."""

    def __init__(self, plane: ControlPlane, say: Say | None = None) -> None:
        self._plane = plane
        self._binary = binaries("kueue", say=say)["kueue"]
        self._definitions = source_directory(go(), recipe("kueue")) / "config/components/crd/bases"
        self._health, self._webhooks, self._metrics = free_port(), free_port(), free_port()
        self.process = self._process()

    def __enter__(self) -> Self:
        create_definitions(self._plane, self._definitions, "Kueue")
        self.process.start()
        self.process.wait_until(self._ready)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        remove = ("delete", "--ignore-not-found", "--wait=false", "-f", str(self._definitions))
        self._plane.kubectl(*remove, check=False)

    def _process(self) -> Process:
        directory = self._plane.directory / "kueue"
        certificates = self._certificates(directory / "certificates")
        configuration = directory / "configuration.json"
        configuration.write_text(json.dumps(self._configuration(certificates)))
        unshare = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else []), "--"]
        config = self._plane.kubeconfig_inside("kueue", "system:masters")
        command: list[str | Path] = [
            *self._plane.enter,
            *unshare,
            *("sh", "-c", IN_ITS_OWN_ETC, "sh", certificates, self._binary),
            f"--kubeconfig={config}",
            f"--config={configuration}",
            "--feature-gates=VisibilityOnDemand=false",
        ]
        return Process(command, self._plane.directory / "kueue.log", name="kueue")

    def _certificates(self, directory: Path) -> Path:
        directory.mkdir(parents=True)
        pair = self._plane.authority.issue("kueue-server", "kueue", hosts=["127.0.0.1", "localhost"])
        shutil.copy(pair.certificate, directory / "tls.crt")
        shutil.copy(pair.key, directory / "tls.key")
        return directory

    def _configuration(self, certificates: Path) -> dict[str, Any]:
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health}"},
            "metrics": {"bindAddress": f"127.0.0.1:{self._metrics}"},
            "webhook": {"host": "127.0.0.1", "port": self._webhooks, "certDir": str(certificates)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "integrations": {"frameworks": ["batch/job"]},
        }

    def _ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._health, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
