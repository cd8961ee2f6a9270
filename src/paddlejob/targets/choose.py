"""Which target a command talks to: by its options, else by what `pdj target` remembers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from paddlejob.errors import BadInput
from paddlejob.targets.remembered import read_remembered

if TYPE_CHECKING:
    from paddlejob.targets.cluster.cluster_target import ClusterTarget
    from paddlejob.targets.sync import SyncTarget


def is_plugin() -> bool:
    """Whether kubectl started pdj as its plugin."""
    return Path(sys.argv[0]).name in ("kubectl-pdj", "kubectl-pdj.exe")


def selects_cluster(cluster: bool | None, context: str) -> bool | None:
    """Whether a command talks to a cluster; as a kubectl plugin it always does. None if the options do not say."""
    if cluster is False and context:
        raise BadInput("--local and --context exclude each other; use one of them")
    return True if cluster or context or is_plugin() else cluster


def choose_target(cluster: bool | None = None, context: str = "") -> SyncTarget:
    """What the options select, else the remembered target, else this machine."""
    from paddlejob.targets.sync import SyncTarget

    selected, remembered = selects_cluster(cluster, context), read_remembered()
    if selected or (selected is None and remembered.cluster):
        return SyncTarget(cluster_target(context))
    from paddlejob.targets.local.local_target import LocalTarget

    target = LocalTarget()
    if remembered.local_namespace:
        target.default_namespace = target.remembered_namespace = remembered.local_namespace
    return SyncTarget(target)


def cluster_target(context: str = "") -> ClusterTarget:
    """The cluster of a context, by default the remembered one."""
    from paddlejob.targets.cluster.cluster_target import ClusterTarget

    remembered = read_remembered()
    chosen = context or remembered.context
    target = ClusterTarget(chosen)
    if remembered.cluster and remembered.namespace and chosen == remembered.context:
        target.default_namespace = target.remembered_namespace = remembered.namespace
    return target
