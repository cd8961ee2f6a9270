"""Volcano, the gang scheduler, as two processes beside a control plane."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from paddlejob.errors import NotPossible
from testbed.addons.definitions import create_definitions
from testbed.build.binaries import Say, binaries, go
from testbed.build.gomod import source_directory
from testbed.build.recipes import recipe
from testbed.controlplane import ControlPlane
from testbed.network.ports import free_port
from testbed.process import Process

SCHEDULER_CONFIGURATION = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


class Volcano:
    """Installs Volcano without its webhooks while the context lasts: `with Volcano(cluster.plane): ...`."""

    def __init__(self, plane: ControlPlane, say: Say | None = None) -> None:
        self._plane = plane
        self._binaries = binaries("vc-scheduler", "vc-controller-manager", say=say)
        source = source_directory(go(), recipe("vc-scheduler"))
        self._definitions = source / "config/crd/volcano/bases"
        self._processes = [self._scheduler(), self._controllers()]

    def __enter__(self) -> Self:
        create_definitions(self._plane, self._definitions, "Volcano")
        for process in self._processes:
            process.start()
        self._wait_for_queue()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.kill()
        self._plane.kubectl("delete", "--ignore-not-found", "-f", str(self._definitions), check=False)

    def _scheduler(self) -> Process:
        configuration = self._plane.directory / "volcano.yaml"
        configuration.write_text(SCHEDULER_CONFIGURATION)
        flags = [f"--scheduler-conf={configuration}", f"--listen-address=127.0.0.1:{free_port()}"]
        return self._process("vc-scheduler", *flags, "--cache-dumper=false")

    def _controllers(self) -> Process:
        return self._process("vc-controller-manager")

    def _process(self, name: str, *flags: str) -> Process:
        config = self._plane.kubeconfig_inside(name, "system:masters")
        command: list[str | Path] = [*self._plane.enter, self._binaries[name], f"--kubeconfig={config}"]
        return Process([*command, "--leader-elect=false", *flags], self._plane.directory / f"{name}.log", name=name)

    def _wait_for_queue(self) -> None:
        """Wait for the queue `default`, which the controllers create; no group is admitted before."""
        deadline = time.monotonic() + 60
        while self._plane.kubectl("get", "queues.scheduling.volcano.sh", "default", check=False).returncode:
            if time.monotonic() > deadline:
                raise NotPossible(f"Volcano created no queue; {self._processes[1].log_tail()}")
            time.sleep(0.2)
