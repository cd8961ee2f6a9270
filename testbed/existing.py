"""An existing cluster of the user."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.access import Access
from testbed.build.binaries import binaries
from testbed.scratch import Scratch


class Existing(Access):
    """The cluster of a given kubeconfig. Tests must not kill its nodes."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.kubectl_path = binaries("kubectl")["kubectl"]
        self._scratch = Scratch()
        self.directory = self._scratch.path

    def __enter__(self) -> Self:
        self.kubectl("get", "--raw", "/readyz")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.remove()
