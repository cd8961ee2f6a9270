"""The first document, command by command. It installs and removes the operator, so it runs first."""

from __future__ import annotations

import re
import shlex
import subprocess

from testbed.cluster import Cluster
from tests.support.on_cluster import ROOT, eventually

WALK = (
    ("000:52", "kubectl create -f deploy/v1/crd.yaml", ""),
    ("000:60", "kubectl get crd", r"paddlejobs\.batch\.paddlepaddle\.org\s+\d{4}-"),
    ("000:82", "kubectl create -f deploy/v1/operator.yaml", ""),
    ("000:88", "kubectl -n paddle-system get pods", r"paddle-controller-manager-\S+\s+1/1\s+Running\s+0"),
    ("000:96", "kubectl -n paddle-system logs {operator}", r"watching all namespaces"),
    ("000:102", "kubectl -n paddle-system create -f deploy/examples/wide_and_deep.yaml", "created"),
    (
        "000:108",
        "kubectl -n paddle-system get pdj",
        r"NAME\s+STATUS\s+MODE\s+PS\s+WORKER\s+PROGRESS\s+AGE\nwide-ande-deep\s+(Pending|Starting|Running)",
    ),
    ("000:108", "kubectl -n paddle-system get pdj", r"\nwide-ande-deep\s+Completed\s+PS\s+2/2\s+0/2\s"),
    ("000:118", "kubectl -n paddle-system get pods", r"wide-ande-deep-worker-0\s+0/1\s+Completed\s+0"),
    ("000:126", "kubectl delete -f deploy/v1/crd.yaml -f deploy/v1/operator.yaml", "deleted"),
    ("000:126", "kubectl get crd", r"^(?!.*paddlejobs)"),
    ("000:126", "kubectl get namespaces", r"(?s)^(?!.*paddle-system)"),
)
"""Line in the document, command, and what it prints in the end."""


def test_the_commands_of_the_first_document(images: Cluster):
    for line, command, expected in WALK:
        arguments = shlex.split(command.format(operator=_operator(images) if "{operator}" in command else ""))

        def prints_it(arguments: list[str] = arguments, expected: str = expected) -> bool:
            done = subprocess.run(arguments, cwd=ROOT, env=images.environment(), capture_output=True, text=True)
            prints_it.last = done.stdout + done.stderr  # type: ignore[attr-defined]
            return done.returncode == 0 and re.search(expected, done.stdout) is not None

        if arguments[1] in ("create", "delete") or arguments[3:4] == ["create"]:
            assert prints_it(), f"{line}: {command}: {prints_it.last}"  # type: ignore[attr-defined]
        else:
            eventually(f"{line}: {command} prints {expected}", prints_it)


def _operator(cluster: Cluster) -> str:
    return cluster.kubectl("-n", "paddle-system", "get", "pods", "-o", "name").stdout.split()[0]
