"""The state of the cluster at the moment when something is wrong, for whoever looks for the cause."""

from __future__ import annotations

from tools.chaos.stage import NAMESPACE, SYSTEM, Stage

ASKED = {
    "jobs.yaml": ("-n", NAMESPACE, "get", "pdj", "-o", "yaml"),
    "pods.yaml": ("-n", NAMESPACE, "get", "pods", "-o", "yaml"),
    "objects.txt": ("-n", NAMESPACE, "get", "pods,configmaps,services", "-o", "wide", "--show-labels"),
    "events.txt": ("-n", NAMESPACE, "get", "events", "--sort-by=.lastTimestamp"),
    "nodes.yaml": ("get", "nodes", "-o", "yaml"),
    "system.yaml": ("-n", SYSTEM, "get", "pods,leases", "-o", "yaml"),
}


def keep_evidence(stage: Stage, number: int, problem: str) -> None:
    stage.look()
    stage.watch.keep(f"{number:02}-problem.txt", problem)
    for file, arguments in ASKED.items():
        stage.watch.keep(f"{number:02}-{file}", stage.kubectl(*arguments, check=False))
