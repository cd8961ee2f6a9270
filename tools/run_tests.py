"""Run the test tiers, and say at the end what passed and what was left out, and why.

    python -m tools.run_tests [TIER ...]     all where none is named, with their quick stories
    python -m tools.run_tests full           all stories of all tiers

Two lanes run side by side: tiers that talk to a Kubernetes, and those that train or compute here, which would get
into each other's ports.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
QUICK = ("-m", "not full")
TWO_AT_ONCE = ("-n", "2", "--dist", "loadfile")
"""These tests mostly wait; each of the two has an API server of its own."""
TRAINING_ASIDE = ("-n", "2", "--dist", "loadgroup")
"""Tests that train are one group, so that no two of them are after the same ports; the others run beside them."""
NO_TESTS = 5
BINARIES = (
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "kubelet", "kube-proxy",
    "coredns", "helm",
)  # fmt: skip


@dataclass(frozen=True)
class Tier:
    name: str
    paths: tuple[str, ...]
    about: str
    lane: str
    options: tuple[str, ...] = QUICK


TIERS = (
    Tier("unit", ("tests/unit", "tests/property"), "pure rooms: stories and laws", "here"),
    Tier("aws", ("tests/aws",), "a cluster on AWS, without AWS", "here"),
    Tier("examples", ("tests/examples",), "the example programs learn", "here"),
    Tier("launch", ("tests/launch",), "the plain Job's launcher finds its pods and trains", "here"),
    Tier(
        "local", ("tests/local",), "the embedded engine, real processes and training", "here", (*QUICK, *TRAINING_ASIDE)
    ),
    Tier("e2e", ("tests/e2e",), "a real cluster with pods that really train", "kubernetes"),
    Tier("engines", ("tests/engines",), "the same stories on both engines", "kubernetes"),
    Tier("apiserver", ("tests/apiserver",), "a real kube-apiserver and etcd", "kubernetes", (*QUICK, *TWO_AT_ONCE)),
)
FULL = tuple(Tier(f"{tier.name}-full", tier.paths, f"{tier.about}, all stories", tier.lane, ()) for tier in TIERS)
"""With the stories that are left out of a quick run: slow ones, and those that fetch more."""
_printing = threading.Lock()


def main(names: list[str]) -> int:
    known = {tier.name: tier for tier in (*TIERS, *FULL)}
    unknown = [name for name in names if name not in known and names != ["full"]]
    if unknown:
        print(f"no such tier: {', '.join(unknown)}; there are {', '.join(known)}, or full for all of those")
        return 2
    if names == ["full"]:
        names = [tier.name for tier in FULL]
    chosen = [known[name] for name in names] or list(TIERS)
    if any(tier.lane == "kubernetes" for tier in chosen):
        build_kubernetes()
    if len(chosen) == 1:
        results = {chosen[0].name: run(chosen[0], live=True)}
    else:
        lanes = {tier.lane: [one for one in chosen if one.lane == tier.lane] for tier in chosen}
        with ThreadPoolExecutor(len(lanes)) as pool:
            done = [pool.submit(lambda tiers: [(one.name, run(one)) for one in tiers], lane) for lane in lanes.values()]
        results = {name: result for lane in done for name, result in lane.result()}
    print("\n== " + ", ".join(f"{name} {words}" for name, (_, words) in results.items()))
    return 1 if any(code not in (0, NO_TESTS) for code, _ in results.values()) else 0


def build_kubernetes() -> None:
    """Minutes the first time, so it is seen; what cannot be built is said by the tiers that lack it."""
    print("== Kubernetes for the tests: built from Go modules the first time, then kept", flush=True)
    subprocess.run([sys.executable, "-m", "testbed", "build", *BINARIES], cwd=ROOT, stdout=subprocess.DEVNULL)


def run(tier: Tier, live: bool = False) -> tuple[int, str]:
    """The exit status of pytest, and the outcome in words. What it prints comes at once, or in one piece."""
    with _printing:
        print(f"== {tier.name}: {tier.about}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        paths = [path for path in tier.paths if (ROOT / path).exists()]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--durations=3",
            f"--junit-xml={report}",
            *tier.options,
            *paths,
        ]
        output = None if live else subprocess.PIPE
        done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT if output else None, text=True)
        left_out = done.returncode == NO_TESTS or (done.returncode == 0 and _all_skipped(report))
    outcome = "left out (see above)" if left_out else "passed" if done.returncode == 0 else "FAILED"
    if not live:
        with _printing:
            print(f"\n== {tier.name}: {outcome}\n{done.stdout}", flush=True)
    return done.returncode, f"{outcome} in {time.monotonic() - begun:.0f} s"


def _all_skipped(report: Path) -> bool:
    suite = ElementTree.parse(report).getroot()[0]
    return int(suite.get("tests", "0")) == int(suite.get("skipped", "0"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
