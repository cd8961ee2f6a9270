"""Whether options select this machine or a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

from paddlejob.errors import BadInput


def is_plugin() -> bool:
    """Whether kubectl started pdj as its plugin."""
    return Path(sys.argv[0]).name in ("kubectl-pdj", "kubectl-pdj.exe")


def selects_cluster(cluster: bool | None, context: str) -> bool | None:
    """Whether a command talks to a cluster; as a kubectl plugin it always does. None if the options do not say."""
    if cluster is False and context:
        raise BadInput("--local and --context exclude each other; use one of them")
    return True if cluster or context or is_plugin() else cluster
