"""What can be done with any cluster whose administrator's kubeconfig we have."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

from testbed.credentials.kubeconfig import with_token


class Access:
    """A cluster, seen from a test. `directory` is for files that go when the cluster does."""

    directory: Path
    kubeconfig: Path
    kubectl_path: Path

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator."""
        done = subprocess.run(
            [self.kubectl_path, *arguments],
            env=self.environment(),
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done

    def environment(self) -> dict[str, str]:
        """Environment in which kubectl, pdj and the operator find this cluster."""
        return os.environ | {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.directory / "kubectl-cache"),
            "PATH": f"{self.kubectl_path.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }

    def kubeconfig_for(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a fresh token of the service account `name`."""
        token = self.kubectl("create", "token", name, "-n", namespace, "--duration=24h").stdout.strip()
        own = json.loads(self.kubectl("config", "view", "--minify", "--raw", "-o", "json").stdout)
        path = self.directory / f"{namespace}-{name}.kubeconfig"
        return with_token(path, own, token, namespace)

    def create_namespace(self, name: str) -> None:
        """Create a namespace and wait for its service account, without which pods are forbidden."""
        self.kubectl("create", "namespace", name)
        deadline = time.monotonic() + 60
        while self.kubectl("get", "serviceaccount", "default", "-n", name, check=False).returncode:
            if time.monotonic() > deadline:
                raise AssertionError(f"namespace {name} has no service account after 60 s")
            time.sleep(0.1)
