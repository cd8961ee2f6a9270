"""The directories pass-0000N: one after each pass over the data, with the parameters and how they came about.

pass-00003/___fc_layer_0__.w0, ___fc_layer_0__.wbias   the parameters
pass-00003/trainer_config.lr.py                        the config that they were trained with
pass-00003/path.txt                                    where this pass was written
pass-00003/done                                        there only where all of the above is whole
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

NAME = re.compile(r"pass-(\d{5})")


def last_pass(output: Path) -> Path | None:
    """The newest whole one."""
    found = [path for path in output.glob("pass-*") if NAME.fullmatch(path.name) and (path / "done").exists()]
    return max(found, default=None)


def number_of(directory: Path) -> int:
    return int(directory.name[len("pass-") :])


def write_pass(output: Path, number: int, config: Path, save: Callable[[Path], None]) -> Path:
    """Nobody ever sees a half one: it gets its name when it is whole."""
    final = output / f"pass-{number:05d}"
    draft = output / f".{final.name}"
    for stale in (draft, final):
        shutil.rmtree(stale, ignore_errors=True)
    draft.mkdir(parents=True)
    save(draft)
    shutil.copy(config, draft / config.name)
    (draft / "path.txt").write_text(f"{final}\n")
    (draft / "done").touch()
    return draft.rename(final)
