"""What every pod of a heterogeneous job is told: prints, as one line of JSON, the role that Paddle's role maker reads.

It does not train: heter training itself fails inside Paddle 2.6.2. A worker ends with 0 when what it was told makes
sense; servers and heter pods stay until they are stopped, as real ones do.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from paddle.distributed import fleet

NEEDED = ("PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST")


def main() -> None:
    missing = [name for name in NEEDED if not os.getenv(name)]
    if missing:
        sys.exit(f"not set: {', '.join(missing)}; `pdj run job.yaml` sets them, see the example's README")
    report = role_report(fleet.PaddleCloudRoleMaker(is_collective=False))
    print(json.dumps(report), flush=True)
    faults = _faults(report)
    if faults:
        sys.exit("\n".join(faults))
    if report["role"] != "worker":
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pause()


def role_report(maker: Any) -> dict[str, Any]:
    """Everything that Paddle knows of this pod and its peers. The role maker has no public methods for it."""
    maker._generate_role()
    report = {
        "role": _role(maker),
        "servers": maker._get_pserver_endpoints(),
        "workers": maker._get_trainer_endpoints(),
        "heters": maker._get_heter_worker_endpoints(),
        "role_id": maker._role_id(),
    }
    if report["role"] == "server":
        return report | {"index": maker._server_index()}
    report |= {"stage": maker._get_stage_id(), "stages": maker._get_num_stage()}
    report |= {"stage_trainers": maker._get_stage_trainers()}
    if report["role"] == "worker":
        return report | {"index": maker._worker_index(), "next": maker._get_next_trainers()}
    index = maker._role_id() - len(report["workers"])
    device = maker._heter_device_type()
    return report | {"index": index, "previous": maker._get_previous_trainers(), "device": device}


def _role(maker: Any) -> str:
    if maker._is_server():
        return "server"
    return "heter" if maker._is_heter_worker() else "worker"


def _faults(report: dict[str, Any]) -> list[str]:
    """What cannot be right, in sentences."""
    mine = f"{os.getenv('POD_IP')}:{os.getenv('PADDLE_PORT')}"
    endpoints = report[f"{report['role']}s"]
    everybody = report["servers"] + report["workers"] + report["heters"]
    faults = []
    if not 0 <= report["index"] < len(endpoints):
        faults.append(f"index {report['index']} is outside the {len(endpoints)} {report['role']}s")
    elif endpoints[report["index"]] != mine:
        faults.append(f"{report['role']} {report['index']} is at {endpoints[report['index']]}, this pod at {mine}")
    if len(set(everybody)) != len(everybody):
        faults.append(f"an endpoint is listed twice: {', '.join(everybody)}")
    return faults


if __name__ == "__main__":
    main()
