"""Every worker runs the interpreter that its job was started with, however many start at once."""

from __future__ import annotations

from tests.support.interpreters import interpreter
from tests.support.pdj import Pdj

ASK = "for i in 1 2 3 4 5; do python -c 'import os; print(os.environ[\"CHOSEN\"])'; python3 -c 'import sys'; done"


def test_two_jobs_with_many_workers_and_different_interpreters_at_once(pdj: Pdj):
    names = ("one3", "two3")
    file = {name: pdj.write(name, command=["bash", "-ec", ASK], workers=4, backoffLimit=0) for name in names}
    running = [
        pdj.start("run", "--overcommit", "--python", interpreter(pdj.folder / name), file[name]) for name in names
    ]
    for name, run in zip(names, running, strict=True):
        output, _ = run.communicate(timeout=180)
        assert run.returncode == 0, output
        for index in range(4):
            assert pdj.log(name, f"worker-{index}").split() == [name] * 5
