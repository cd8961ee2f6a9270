"""`python -m tools.mutants [--mutants N] [--seed N] [--package NAME,...] [--tests PATH,...]`."""

from __future__ import annotations

import argparse
import compileall
import os
import py_compile
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.mutants import isolation
from tools.mutants.mutations import Mutation, mutations
from tools.mutants.tests import Baseline, Recorded, notice, preload, record

ROOT = Path(__file__).parent.parent.parent
PRODUCT = "src/paddlejob"
TESTS = {
    "api": ("tests/unit/api", "tests/unit/plan"),
    "plan": ("tests/unit/plan", "tests/unit/engine", "tests/property"),
    "engine": ("tests/unit/engine", "tests/property"),
    "objects": ("tests/unit/objects", "tests/unit/operator"),
    "kube": ("tests/unit/kube",),
    "operator": ("tests/unit/operator", "tests/unit/objects"),
    "local": ("tests/unit/local", "tests/local/test_unprivileged.py"),
    "progress": ("tests/unit/progress", "tests/unit/engine"),
    "code": ("tests/unit/code",),
    "client": ("tests/unit/client", "tests/unit/cli", "tests/local/test_python_api.py"),
}
"""The tests that judge each package; another package is judged by its own unit tests."""
SLOW_TESTS = {"cloud": ("tests/aws",)}
"""The tests that judge packages which are measured only when they are named: they take a minute."""
MEASURED_WITH = {"cli/aws/": "cloud"}
"""Folders of one package that the tests of another one judge, and so belong to its sample."""
RUN_AS_PROGRAMS = {
    "local/sandbox/": ("tests/unit/local/test_sandbox", "tests/unit/local/test_engine", "tests/local", "tests/engines"),
    "local/runner.py": ("tests/unit/local/test_runner", "tests/local"),
    "local/machine/gpu_driver.py": ("tests/unit/local/test_gpu",),
    "local/machine/gpus.py": ("tests/unit/local/test_gpus",),
    "launch/": ("tests/unit/launch", "tests/launch"),
}
"""Code that also runs in processes which the tests start, where no lines are recorded, and the tests that judge it."""
ISOLATED_ONLY = "local/sandbox/"
"""A mutant of this may kill every process of the machine."""
FEW = 5
"""What runs once per process, as a cached function does, is recorded for the first test only. So a line that fewer
tests run is judged by all tests that run some line of its package, as is code that runs at import."""
MUTANTS = 350
Tests = Mapping[str, Recorded]


@dataclass
class Score:
    """What became of the mutants of a package."""

    killed: int = 0
    survivors: list[tuple[Mutation, bool]] = field(default_factory=list)
    """With each, whether any test runs the line."""

    @property
    def mutants(self) -> int:
        return self.killed + len(self.survivors)


def main() -> int:
    chosen = _arguments()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    os.nice(2)
    started = time.monotonic()
    with _copy() as root:
        baseline = _baseline(root, _paths(chosen.package, chosen.tests))
        took = time.monotonic() - started
        print(f"== {len(baseline.tests)} tests pass on the unchanged code; recorded in {took:.0f} s", flush=True)
        preload(baseline.modules)
        before = _cpu_seconds()
        scores = {name: Score() for name in chosen.package}
        try:
            for package, mutation in _sample(root, chosen.package, chosen.mutants, chosen.seed):
                judges = (*_judges(package), *chosen.tests)
                tests = {name: test for name, test in baseline.tests.items() if name.startswith(judges)}
                at_import = replace(mutation, imported=mutation.imported or bool(mutation.lines & baseline.imports))
                _judge(root, tests, at_import, scores[package])
        except KeyboardInterrupt:
            print("interrupted; so far:")
    _report(scores, time.monotonic() - started - took, _cpu_seconds() - before)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description="See which mutants the tests notice.")
    parser.add_argument("--mutants", type=int, default=MUTANTS, help=f"how many, shared evenly (default: {MUTANTS})")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives another sample (default: 1)")
    parser.add_argument("--package", type=_names, default=list(TESTS), help=f"default: {','.join(TESTS)}")
    parser.add_argument("--tests", type=_names, default=[], help="paths of more tests to judge by, such as tests/local")
    chosen = parser.parse_args()
    for name in chosen.package:
        if not (ROOT / PRODUCT / name).is_dir():
            parser.error(f"{name} is not a package of {PRODUCT}")
    return chosen


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _paths(packages: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the paths of the tests that judge these packages."""
    wanted = [path for name in packages for path in _judges(name)]
    return [path for path in dict.fromkeys([*wanted, *more]) if (ROOT / path).exists()]


def _judges(package: str) -> tuple[str, ...]:
    return TESTS.get(package) or SLOW_TESTS.get(package) or (f"tests/unit/{package}",)


@contextmanager
def _copy() -> Iterator[Path]:
    """Provide a copy of the working tree that is gone afterwards, with all that the tests leave in TMPDIR."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as scratch:
        root, temporary = Path(scratch, "r"), Path(scratch, "t")
        temporary.mkdir()
        Path(scratch).chmod(0o755)  # a test reads what it wrote there as another user
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
            if name and (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name)
        # The bytecode of a mutant must never be taken for that of another file state within the same second.
        compileall.compile_dir(root, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        sys.dont_write_bytecode = True
        os.environ |= {"TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
        tempfile.tempdir = None
        yield root


def _baseline(root: Path, paths: Sequence[str]) -> Baseline:
    baseline = record(root, paths)
    if baseline.exit_code:
        raise SystemExit("The tests fail on the unchanged code, so they cannot judge mutants; fix them first.")
    return baseline


def _sample(root: Path, packages: Sequence[str], count: int, seed: int) -> Iterator[tuple[str, Mutation]]:
    """Yield the same number of mutants of each package; which ones depends on the seed and the package's source."""
    isolated = isolation.is_available()
    if not isolated and "local" in packages:
        print(f"== {ISOLATED_ONLY} is left out: this needs root, and namespaces")
    for number, package in enumerate(packages):
        files = measured_files(root, package)
        found = [one for path in files for one in mutations(_name(root, path), path.read_bytes())]
        if not isolated:
            found = [one for one in found if not one.file.startswith(ISOLATED_ONLY)]
        share = (count + number) // len(packages)
        for mutation in random.Random(f"{seed} {package}").sample(found, min(share, len(found))):
            yield package, mutation


def measured_files(root: Path, package: str) -> list[Path]:
    """Return the files that are measured with a package, in a fixed order."""
    found = []
    for path in sorted((root / PRODUCT).rglob("*.py")):
        name = _name(root, path)
        measured = next((other for folder, other in MEASURED_WITH.items() if name.startswith(folder)), "")
        if (measured or name.partition("/")[0]) == package:
            found.append(path)
    return found


def _name(root: Path, path: Path) -> str:
    return str(path.relative_to(root / PRODUCT))


def _judge(root: Path, tests: Tests, mutation: Mutation, score: Score) -> None:
    """Run the tests that run the mutant's line, and print one line about it."""
    path = root / PRODUCT / mutation.file
    chosen = _covering(tests, mutation)
    source = path.read_bytes()
    try:
        path.write_bytes(mutation.apply(source))
        started = time.monotonic()
        killed = bool(chosen) and notice(root, chosen)
    finally:
        path.write_bytes(source)
    if killed:
        score.killed += 1
    else:
        score.survivors.append((mutation, bool(chosen)))
    took = time.monotonic() - started
    print(f"{'killed  ' if killed else 'SURVIVED'} {took:5.1f} s  {len(chosen):3} tests  {mutation}", flush=True)


def _covering(tests: Tests, mutation: Mutation) -> dict[str, float]:
    """Return the tests that run the mutant's line, each with its duration."""
    found = {name: test for name, test in tests.items() if not mutation.lines.isdisjoint(test.lines)}
    programs = next((judges for prefix, judges in RUN_AS_PROGRAMS.items() if mutation.file.startswith(prefix)), ())
    if programs:
        found |= {name: test for name, test in tests.items() if name.startswith(programs)}
    elif mutation.imported or 0 < len(found) < FEW:
        package = mutation.file.partition("/")[0]
        found = {name: test for name, test in tests.items() if package in test.packages}
    return {name: test.seconds for name, test in found.items()}


def _report(scores: dict[str, Score], seconds: float, cpu: float) -> None:
    for name, score in scores.items():
        if score.survivors:
            print(f"\n== Survivors in {name}")
        for mutation, covered in sorted(score.survivors, key=lambda one: (one[0].file, one[0].first)):
            print(f"{PRODUCT}/{mutation}{'' if covered else '  (no test runs this line)'}")
    print(f"\n{'package':10} {'mutants':>8} {'killed':>8} {'killed %':>9} {'survived %':>11}")
    for name, score in [*scores.items(), ("all", _total(scores))]:
        share = 100 * score.killed / score.mutants if score.mutants else 0.0
        print(f"{name:10} {score.mutants:8} {score.killed:8} {share:9.0f} {100 - share:11.0f}")
    count = _total(scores).mutants
    each = seconds / max(count, 1), cpu / max(count, 1)
    print(f"\n{count} mutants in {seconds:.0f} s; each took {each[0]:.1f} s, and {each[1]:.1f} s of CPU")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _total(scores: dict[str, Score]) -> Score:
    total = Score()
    for score in scores.values():
        total.killed += score.killed
        total.survivors += score.survivors
    return total


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
