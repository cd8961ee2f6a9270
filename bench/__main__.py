"""Run every benchmark; afterwards bench/figures.json has every figure that the documentation draws.

python -m bench     half an hour on a quiet machine; needs root for those on the test cluster
"""

from __future__ import annotations

import subprocess
import sys

FAULTS = ("--kind", "kill", "--kind", "delete")
BENCHMARKS = (
    ("operator",),
    ("restarts",),
    ("local",),
    ("data",),
    ("parser",),
    ("logs",),
    ("web",),
    ("goodput", *FAULTS),
    ("goodput", "--job", "ps", *FAULTS),
    ("goodput", "--engine", "cluster", *FAULTS),
    ("goodput", "--engine", "cluster", "--kind", "node", "--minutes", "4", "--every", "120"),
)


def main() -> int:
    """A goal that is missed must not keep the other benchmarks from running."""
    missed = []
    for module, *options in BENCHMARKS:
        print(f"== bench.{' '.join([module, *options])}", flush=True)
        if subprocess.run([sys.executable, "-m", f"bench.{module}", *options]).returncode:
            missed.append(" ".join([module, *options]))
    for one in missed:
        print(f"bench.{one}: failed or missed a goal; see above")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
