"""Submitting and watching jobs on a real cluster."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.access import Access
from tests.support.expecting import matches

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "deploy/examples"
PATIENCE = 240.0
DEPLOYMENT = "deployment/paddle-controller-manager"
Object = dict[str, Any]
QUICK = {
    "terminationGracePeriodSeconds": 2,
    "tolerations": [
        {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
        for taint in ("not-ready", "unreachable")
    ],
}
"""Pods leave a lost node after seconds instead of the default five minutes."""


def eventually(what: str, condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Poll `condition` and return its first true result."""
    ends = time.monotonic() + patience
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < ends, f"not within {patience:.0f} s: {what}"
        time.sleep(0.3)


class Job:
    """A PaddleJob that was submitted to a namespace of a cluster."""

    def __init__(self, cluster: Access, namespace: str, name: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name = name

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments, check=check).stdout

    def status(self) -> Object:
        found = json.loads(self.kubectl("get", "pdj", self.name, "-o", "json"))
        status: Object = found.get("status") or {}
        return status

    def until(self, patience: float = PATIENCE, **expected: Any) -> Object:
        last: Object = {}

        def as_expected() -> Object | None:
            nonlocal last
            last = self.status()
            return last if matches(last, expected) else None

        try:
            found: Object = eventually(f"{self.name} shows {expected}", as_expected, patience)
        except AssertionError as error:
            pods = self.kubectl("get", "pods", "-o", "wide", check=False)
            raise AssertionError(f"{error}; its status: {last}\n{pods}") from None
        return found

    def pods(self) -> dict[str, Object]:
        listed = json.loads(self.kubectl("get", "pods", "-l", f"batch.paddlepaddle.org/job={self.name}", "-o", "json"))
        return {one["metadata"]["name"]: one for one in listed["items"]}

    def log(self, pod: str) -> str:
        return self.kubectl("logs", pod, check=False)

    def final(self, metric: str, worker: int = 0) -> tuple[float, float]:
        """A metric of the trained and of the untrained model, from the worker's log."""
        log = self.log(f"{self.name}-worker-{worker}")
        found = re.search(rf"final .*?\b{metric}=([\d.]+).*?untrained_{metric}=([\d.]+)", log)
        assert found, log[-2000:]
        return float(found[1]), float(found[2])


def submit(cluster: Access, namespace: str, file: str | Path, **changes: Any) -> Job:
    """Create the objects of a file, with `changes` made to the spec of its job."""
    path = EXAMPLES / file if isinstance(file, str) else file
    if not changes:
        cluster.kubectl("-n", namespace, "create", "-f", str(path))
        return Job(cluster, namespace, _name(path.read_text()))
    import yaml

    documents = list(yaml.safe_load_all(path.read_text()))
    job = next(one for one in documents if one["kind"] == "PaddleJob")
    job["metadata"]["name"] = changes.pop("name", job["metadata"]["name"])
    quick = changes.pop("quick", False)
    for role in ("ps", "worker"):
        if quick:
            job["spec"][role]["template"]["spec"] |= QUICK
        env = changes.pop(f"{role}_env", None)
        if env:
            container = job["spec"][role]["template"]["spec"]["containers"][0]
            container["env"] = [{"name": name, "value": str(value)} for name, value in env.items()]
    job["spec"] |= changes
    cluster.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(job))
    return Job(cluster, namespace, job["metadata"]["name"])


@contextlib.contextmanager
def gpus(cluster: Access, count: Mapping[str, int]) -> Iterator[None]:
    """Nodes with an extended resource, as a device plugin would report it."""

    def report(numbers: Mapping[str, int]) -> None:
        for node, number in numbers.items():
            patch = json.dumps({"status": {"capacity": {"nvidia.com/gpu": str(number)}}})
            cluster.kubectl("patch", "node", node, "--subresource=status", "-p", patch)

    report(count)
    try:
        yield
    finally:
        report(dict.fromkeys(count, 0))


def _name(text: str) -> str:
    found = re.search(r"kind: PaddleJob\nmetadata:\n  name: (\S+)", text)
    assert found
    return found[1]
