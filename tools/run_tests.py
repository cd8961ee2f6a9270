"""Run the test tiers and report which passed, failed or were skipped.

    python -m tools.run_tests [TIER ...]     the quick tests of these tiers; of all tiers by default
    python -m tools.run_tests full           every test of every tier, including slow ones

The tiers run in two lanes side by side: one for those that talk to a Kubernetes API server, one for those that train
or compute on this machine, which would compete for ports if they ran at the same time.
"""

from __future__ import annotations

import os
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
"""For tests that can run side by side; each worker has its own API server."""
AS_LISTED = "--no-loadscope-reorder"
"""Files with few tests would go last, and the laws are such files: one worker would wait for the other at the end."""
ONE_TRAINING = ("-n", "2", "--dist", "loadgroup")
"""Tests that train share one group, so that they never compete for ports; other tests run next to them."""
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
    Tier(
        "unit",
        ("tests/property", "tests/unit"),
        "unit and property tests",
        "machine",
        (*QUICK, *TWO_AT_ONCE, AS_LISTED),
    ),
    Tier("aws", ("tests/aws",), "pdj aws against a simulated AWS", "machine"),
    Tier("examples", ("tests/examples",), "the example programs learn", "machine"),
    Tier("launch", ("tests/launch",), "the launcher for plain batch/v1 Jobs", "machine"),
    Tier("local", ("tests/local",), "the embedded engine, with real training", "machine", (*QUICK, *ONE_TRAINING)),
    Tier("web", ("tests/web",), "pdj web in a real browser", "machine"),
    Tier("e2e", ("tests/e2e",), "pods that really train on a real cluster", "kubernetes"),
    Tier("engines", ("tests/engines",), "the same tests on both engines", "kubernetes"),
    Tier("apiserver", ("tests/apiserver",), "a real kube-apiserver and etcd", "kubernetes", (*QUICK, *TWO_AT_ONCE)),
)
FULL = tuple(Tier(f"{tier.name}-full", tier.paths, f"{tier.about}, every test", tier.lane, ()) for tier in TIERS)
"""Includes the tests that a quick run leaves out because they are slow or download more."""
_printing = threading.Lock()


def main(names: list[str]) -> int:
    known = {tier.name: tier for tier in (*TIERS, *FULL)}
    unknown = [name for name in names if name not in known and names != ["full"]]
    if unknown:
        print(f"unknown tier: {', '.join(unknown)}; choose from {', '.join(known)}, or `full` for every test")
        return 2
    if names == ["full"]:
        names = [tier.name for tier in FULL]
    chosen = [known[name] for name in names] or list(TIERS)
    if any(tier.lane == "kubernetes" for tier in chosen):
        build_kubernetes()
    results = run_lanes(chosen) if len(chosen) > 1 else {tier.name: run(tier, live=True) for tier in chosen}
    print("\n== " + ", ".join(f"{name} {outcome}" for name, (_, outcome) in results.items()))
    return 1 if any(code not in (0, NO_TESTS) for code, _ in results.values()) else 0


def build_kubernetes() -> None:
    """Build the binaries up front and visibly, as it takes minutes; a tier that lacks one skips and says so."""
    print("== Kubernetes for the tests: built from Go modules the first time, then cached", flush=True)
    subprocess.run([sys.executable, "-m", "testbed", "build", *BINARIES], cwd=ROOT, stdout=subprocess.DEVNULL)


def run_lanes(tiers: list[Tier]) -> dict[str, tuple[int, str]]:
    """Run the lanes side by side, and the tiers of each lane one after the other."""
    lanes = {tier.lane: [one for one in tiers if one.lane == tier.lane] for tier in tiers}
    with ThreadPoolExecutor(len(lanes)) as pool:
        done = [pool.submit(lambda lane: [(one.name, run(one)) for one in lane], lane) for lane in lanes.values()]
    return {name: result for lane in done for name, result in lane.result()}


def run(tier: Tier, live: bool = False) -> tuple[int, str]:
    """Return pytest's exit status and a description of the outcome; print its output as it comes, or at the end."""
    with _printing:
        print(f"== {tier.name}: {tier.about}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        paths = [path for path in tier.paths if (ROOT / path).exists()]
        pytest = [sys.executable, "-m", "pytest", "-q", "--durations=3", f"--junit-xml={report}"]
        output = None if live else subprocess.PIPE
        errors = None if live else subprocess.STDOUT
        command = [*pytest, *tier.options, *paths]
        done = subprocess.run(command, cwd=ROOT, env=_environment(), stdout=output, stderr=errors, text=True)
        skipped = done.returncode == NO_TESTS or (done.returncode == 0 and _all_skipped(report))
    outcome = "skipped (see above)" if skipped else "passed" if done.returncode == 0 else "FAILED"
    if not live:
        with _printing:
            print(f"\n== {tier.name}: {outcome}\n{done.stdout}", flush=True)
    return done.returncode, f"{outcome} in {time.monotonic() - started:.0f} s"


def _environment() -> dict[str, str]:
    """With bytecode, whatever is set outside: a test starts hundreds of processes, and compiling doubles their time."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _all_skipped(report: Path) -> bool:
    suite = ElementTree.parse(report).getroot()[0]
    return int(suite.get("tests", "0")) == int(suite.get("skipped", "0"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
