"""Operations on any cluster for which there is an administrator's kubeconfig."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

from testbed.credentials.kubeconfig import with_token


class Access:
    """A cluster as a test uses it. `directory` is for files that are deleted with the cluster."""

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
        """Return the environment in which kubectl, pdj and the operator find this cluster."""
        return os.environ | {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.directory / "kubectl-cache"),
            "PATH": f"{self.kubectl_path.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }

    def kubeconfig_for(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a new token of the service account `name`."""
        token = self.kubectl("create", "token", name, "-n", namespace, "--duration=24h").stdout.strip()
        own = json.loads(self.kubectl("config", "view", "--minify", "--raw", "-o", "json").stdout)
        path = self.directory / f"{namespace}-{name}.kubeconfig"
        return with_token(path, own, token, namespace)

    def create_namespace(self, name: str) -> None:
        """Create a namespace and wait for its service account, without which pods are rejected."""
        self.kubectl("create", "namespace", name)
        deadline = time.monotonic() + 60
        while self.kubectl("get", "serviceaccount", "default", "-n", name, check=False).returncode:
            if time.monotonic() > deadline:
                raise AssertionError(f"namespace {name} has no service account after 60 s")
            time.sleep(0.1)
