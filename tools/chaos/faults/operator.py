"""Faults of the operator."""

from __future__ import annotations

import json
import signal
import time

from tools.chaos.faults.hit import THIEF, Fault, Hit, works
from tools.chaos.stage import CRD, DEPLOYMENT, SYSTEM, Stage, name_of


def operator_killed(stage: Stage) -> Hit | None:
    pods = stage.operators()
    if not pods:
        return None
    stage.signal(pods[0], signal.SIGKILL)
    return Hit(name_of(pods[0]), works(stage))


def operator_deleted(stage: Stage) -> Hit | None:
    stage.kubectl("-n", SYSTEM, "delete", "pods", "--all", "--force", "--grace-period=0", check=False)
    return Hit("", works(stage))


def operator_frozen(stage: Stage) -> Hit | None:
    pods = stage.operators()
    if not pods:
        return None
    stage.signal(pods[0], signal.SIGSTOP)
    time.sleep(stage.random.choice([3, 20]))
    stage.signal(pods[0], signal.SIGCONT)
    return Hit(name_of(pods[0]), works(stage))


def operator_upgraded(stage: Stage) -> Hit | None:
    stage.kubectl("replace", "-f", str(CRD), check=False)
    stage.kubectl("-n", SYSTEM, "set", "env", DEPLOYMENT, f"UPGRADED={time.time():.0f}", check=False)
    return Hit("", works(stage))


def lease_stolen(stage: Stage) -> Hit | None:
    """Write another holder into the operator's lease, which never renews it."""
    leases = stage.items("leases", SYSTEM)
    if not leases:
        return None
    patch = json.dumps({"spec": {"holderIdentity": THIEF}})
    stage.kubectl("-n", SYSTEM, "patch", "lease", name_of(leases[0]), "--type=merge", "-p", patch, check=False)
    return Hit(name_of(leases[0]), works(stage))


OF_THE_OPERATOR: tuple[Fault, ...] = (
    operator_killed, operator_deleted, operator_frozen, operator_upgraded, lease_stolen,
)  # fmt: skip
