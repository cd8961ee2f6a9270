"""Run the test tiers, each on its own, and say at the end what passed and what was left out, and why.

Tiers: python -m tools.run_tests [TIER ...], all where none is named.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Tier:
    name: str
    paths: tuple[str, ...]
    about: str
    options: tuple[str, ...] = ()


TIERS = (
    Tier("unit", ("tests/unit", "tests/property"), "pure rooms: stories and laws"),
    Tier("aws", ("tests/aws",), "a cluster on AWS, without AWS"),
    Tier("examples", ("tests/examples",), "the example programs learn"),
    Tier("launch", ("tests/launch",), "the plain Job's launcher finds its pods and trains"),
    Tier("local", ("tests/local",), "the embedded engine, real processes and training"),
    Tier("apiserver", ("tests/apiserver",), "a real kube-apiserver and etcd"),
    Tier("engines", ("tests/engines",), "the same stories on both engines"),
    Tier("e2e", ("tests/e2e",), "a real cluster with pods that really train", ("-m", "not full")),
)
FULL = Tier("e2e-full", ("tests/e2e",), "all stories of a real cluster")
NO_TESTS = 5


def main(names: list[str]) -> int:
    known = {tier.name: tier for tier in (*TIERS, FULL)}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such tier: {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    results = {}
    for tier in [known[name] for name in names] or TIERS:
        paths = [path for path in tier.paths if (ROOT / path).exists()]
        if paths:
            results[tier.name] = run(tier, paths)
    print("\n== " + ", ".join(f"{name} {words}" for name, (_, words) in results.items()))
    return 1 if any(code not in (0, NO_TESTS) for code, _ in results.values()) else 0


def run(tier: Tier, paths: list[str]) -> tuple[int, str]:
    print(f"\n== {tier.name}: {tier.about}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", *tier.options, *paths]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        left_out = code == NO_TESTS or (code == 0 and _all_skipped(report))
    outcome = "left out (see above)" if left_out else "passed" if code == 0 else "FAILED"
    return code, f"{outcome} in {time.monotonic() - begun:.0f} s"


def _all_skipped(report: Path) -> bool:
    suite = ElementTree.parse(report).getroot()[0]
    return int(suite.get("tests", "0")) == int(suite.get("skipped", "0"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
