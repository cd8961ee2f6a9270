"""Run the test tiers, each on its own, and say at the end what passed and what was left out, and why.

Tiers: python -m tools.run_tests [TIER ...], all where none is named.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Tier:
    name: str
    paths: tuple[str, ...]
    about: str


TIERS = (
    Tier("unit", ("tests/unit", "tests/property"), "pure rooms: stories and laws"),
    Tier("aws", ("tests/aws",), "a cluster on AWS, without AWS"),
    Tier("examples", ("tests/examples",), "the example programs learn"),
    Tier("local", ("tests/local",), "the embedded engine, real processes and training"),
    Tier("apiserver", ("tests/apiserver",), "a real kube-apiserver and etcd"),
    Tier("engines", ("tests/engines",), "the same stories on both engines"),
    Tier("e2e", ("tests/e2e",), "a real cluster with pods that really train"),
)
NO_TESTS = 5


def main(names: list[str]) -> int:
    known = {tier.name: tier for tier in TIERS}
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
    code = subprocess.run([sys.executable, "-m", "pytest", "-q", *paths], cwd=ROOT, check=False).returncode
    outcome = {0: "passed", NO_TESTS: "left out (see above)"}.get(code, "FAILED")
    return code, f"{outcome} in {time.monotonic() - begun:.0f} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
