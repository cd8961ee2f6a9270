"""Check on a machine with NVIDIA GPUs that the GPUs `pdj run` hands out are those that a CUDA program sees.

`python3 tools/gpu_check.py` needs nothing but Python and this repository. It exits with 1 on any mismatch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
sys.path.insert(0, str(SOURCE))

from paddlejob.local.machine.gpu_locks import is_free, lock_gpus, share_gpus  # noqa: E402
from paddlejob.local.machine.gpus import (  # noqa: E402
    DRIVER,
    ORDER,
    PCI_ORDER,
    VISIBLE,
    Gpu,
    ask_cuda,
    environment,
    find_gpus,
    run_with_timeout,
)

HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
from paddlejob.local.machine.gpu_locks import lock_gpus
from paddlejob.local.machine.gpus import find_gpus
locks = lock_gpus(find_gpus().gpus, int(sys.argv[2]))
print(*[lock.gpu.uuid for lock in locks], flush=True)
sys.stdin.read()
"""
"""Another process that holds GPUs until its standard input ends."""


class Report:
    def __init__(self) -> None:
        self.mismatches = 0

    def expect(self, what: str, found: object, expected: object) -> None:
        good = found == expected
        self.mismatches += not good
        print(f"{'ok      ' if good else 'MISMATCH'} {what}: {found}" + ("" if good else f", expected {expected}"))


def without(environ: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in names}


def show(title: str, command: list[str]) -> None:
    print(f"== {title}")
    try:
        done = run_with_timeout(command, 60)
        print((done.stdout + done.stderr).rstrip() or "(no output)", f"[exit status {done.returncode}]")
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error)


def check_assignment(report: Report, gpus: tuple[Gpu, ...], environ: dict[str, str]) -> None:
    """A child that is given one GPU sees that one alone; a child that is given all sees all, in order."""
    print("== CUDA programs with the variables that pods get")
    for gpu in gpus:
        report.expect(str(environment([gpu])), ask_cuda(environ | environment([gpu])), [gpu.uuid])
    report.expect(str(environment(gpus)), ask_cuda(environ | environment(gpus)), [gpu.uuid for gpu in gpus])
    report.expect(str(environment([])), ask_cuda(environ | environment([])), [])


def check_user_lists(report: Report, gpus: tuple[Gpu, ...], environ: dict[str, str]) -> None:
    """What we take a user's list for, beside what CUDA takes it for."""
    print("== the user's CUDA_VISIBLE_DEVICES: the GPUs that jobs may use")
    uuid, last = gpus[0].uuid, len(gpus) - 1
    same_as_cuda = ["0", str(last), uuid, uuid[:12], "-1", "", "0,-1", "0,99", "99", "GPU-0000", "NoDevFiles"]
    own_rule = {"0, 0": [uuid], f" {uuid}": [uuid], f"0,{uuid[:12]}": [uuid]}
    for value in same_as_cuda:
        seen = ask_cuda(environ | {VISIBLE: value})
        report.expect(f'"{value}"', [gpu.uuid for gpu in find_gpus(environ | {VISIBLE: value}).gpus], seen)
    spaced = ", ".join(str(index) for index in range(len(gpus)))
    for value, expected in {**own_rule, spaced: [gpu.uuid for gpu in gpus]}.items():
        found = [gpu.uuid for gpu in find_gpus(environ | {VISIBLE: value}).gpus]
        report.expect(f'"{value}" (CUDA sees {ask_cuda(environ | {VISIBLE: value})})', found, expected)
    for value in ("0,99", "-1", ""):
        print(f'note for "{value}": {find_gpus(environ | {VISIBLE: value}).note}')


def check_locks(report: Report, gpus: tuple[Gpu, ...], environ: dict[str, str]) -> None:
    print("== another process holds GPUs")
    report.expect("free before", [is_free(gpu) for gpu in gpus], [True] * len(gpus))
    command = [sys.executable, "-c", HOLD, str(SOURCE), str(len(gpus))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environ) as holder:
        assert holder.stdout is not None
        report.expect("the other process holds", holder.stdout.readline().split(), [gpu.uuid for gpu in gpus])
        report.expect("free while it lives", [is_free(gpu) for gpu in gpus], [False] * len(gpus))
        report.expect("we get", lock_gpus(gpus, 1), [])
        shared = share_gpus(gpus, 1)
        report.expect("with --overcommit we share", [(lock.gpu, lock.shared) for lock in shared], [(gpus[0], True)])
        holder.kill()
    report.expect("after it was killed, a shared GPU is still not free", is_free(gpus[0]), False)
    for lock in shared:
        lock.release()
    locks = lock_gpus(gpus, len(gpus))
    report.expect("we get all of them", [lock.gpu for lock in locks], list(gpus))
    for lock in locks:
        lock.release()


def main() -> None:
    show("nvidia-smi -L", ["nvidia-smi", "-L"])
    show("NVML", [sys.executable, "-I", "-S", str(DRIVER), "nvml"])
    show("CUDA", [sys.executable, "-I", "-S", str(DRIVER), "cuda"])
    environ = without(os.environ, VISIBLE, ORDER)
    listed = find_gpus(environ)
    print("== paddlejob", *listed.gpus, listed.note or "(no note)", sep="\n")
    if not listed.gpus:
        sys.exit("no GPU was found, so nothing can be checked")
    report = Report()
    report.expect("all GPUs, in PCI order", ask_cuda(environ | {ORDER: PCI_ORDER}), [gpu.uuid for gpu in listed.gpus])
    check_assignment(report, listed.gpus, environ)
    check_user_lists(report, listed.gpus, environ)
    check_locks(report, listed.gpus, environ)
    print(f"{report.mismatches} mismatches" if report.mismatches else "all as expected")
    sys.exit(bool(report.mismatches))


if __name__ == "__main__":
    main()
