"""Prints the role of a heterogeneous job's pod, as Paddle's role maker reads it from the environment, as JSON.

It does not train: heter training fails inside Paddle 2.6.2. A worker exits with code 0 if its environment is
consistent; servers and heter pods run until they are stopped, as real ones do.
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
        sys.exit(f"not set: {', '.join(missing)}; run this example with `pdj run job.yaml` (see its README)")
    report = role_report(fleet.PaddleCloudRoleMaker(is_collective=False))
    print(json.dumps(report), flush=True)
    errors = _errors(report)
    if errors:
        sys.exit("\n".join(errors))
    if report["role"] != "worker":
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pause()


def role_report(maker: Any) -> dict[str, Any]:
    """What Paddle knows about this pod and its peers; the role maker has no public methods for it."""
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


def _errors(report: dict[str, Any]) -> list[str]:
    """What is inconsistent in the environment."""
    own = f"{os.getenv('POD_IP')}:{os.getenv('PADDLE_PORT')}"
    endpoints = report[f"{report['role']}s"]
    all_endpoints = report["servers"] + report["workers"] + report["heters"]
    errors = []
    if not 0 <= report["index"] < len(endpoints):
        errors.append(f"index {report['index']} is outside the {len(endpoints)} {report['role']}s")
    elif endpoints[report["index"]] != own:
        errors.append(
            f"{report['role']} {report['index']} is at {endpoints[report['index']]}, but this pod is at {own}"
        )
    if len(set(all_endpoints)) != len(all_endpoints):
        errors.append(f"an endpoint is listed twice: {', '.join(all_endpoints)}")
    return errors


if __name__ == "__main__":
    main()
