"""Faults of the control plane. Each is undone after a few seconds."""

from __future__ import annotations

import time

from tools.chaos.faults.hit import Fault, Hit, works
from tools.chaos.ledger import DISRUPTION
from tools.chaos.stage import Stage


def _blame(stage: Stage) -> None:
    """Nodes cannot renew their leases meanwhile; the node controller, which waits 8 s here, may take them for lost."""
    stage.blame(DISRUPTION)


def etcd_paused(stage: Stage) -> Hit | None:
    seconds = stage.random.choice([2, 8])
    _blame(stage)
    stage.cluster.plane.pause_etcd()
    time.sleep(seconds)
    stage.cluster.plane.resume_etcd()
    return Hit(f"for {seconds} s", works(stage))


def api_server_killed(stage: Stage) -> Hit | None:
    seconds = stage.random.choice([0, 6])
    _blame(stage)
    stage.cluster.plane.kill_apiserver()
    time.sleep(seconds)
    stage.cluster.plane.start_apiserver()
    return Hit(f"down for {seconds} s and its start", works(stage))


def scheduler_killed(stage: Stage) -> Hit | None:
    return _restarted(stage, "kube-scheduler")


def controllers_killed(stage: Stage) -> Hit | None:
    return _restarted(stage, "kube-controller-manager")


def _restarted(stage: Stage, name: str) -> Hit:
    seconds = stage.random.choice([0, 6])
    _blame(stage)
    process = stage.cluster.plane.processes[name]
    process.kill()
    time.sleep(seconds)
    process.start()
    return Hit(f"down for {seconds} s", works(stage))


OF_THE_CONTROL_PLANE: tuple[Fault, ...] = (etcd_paused, api_server_killed, scheduler_killed, controllers_killed)
