"""`make picture`: writes docs/images/live.svg, a screenshot of `pdj run` while wide & deep trains."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from paddlejob.cli.run.live import render
from paddlejob.cli.run.observation import observer
from paddlejob.targets.local.local_target import LocalTarget
from paddlejob.targets.sync import SyncTarget

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs/images/live.svg"
FILE = ROOT / "deploy/examples/wide_and_deep_podip.yaml"
JOB = ("default", "wide-ande-deep")
PDJ = [sys.executable, "-m", "paddlejob"]
HEIGHT = 24
MOMENT = "epoch 4/"
TIMEOUT = 180


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PADDLEJOB_STATE"] = scratch
        subprocess.run([*PDJ, "run", "--detach", str(FILE)], check=True)
        try:
            _wait_for(MOMENT)
            console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
            console.print("[bold]$ pdj run wide_and_deep.yaml[/bold]\n")
            observe, target = observer(LocalTarget()), SyncTarget(LocalTarget())
            observe(target.job(*JOB), 0)
            time.sleep(1)
            view = target.job(*JOB)
            console.print(render(view, observe(view, HEIGHT), HEIGHT))
            TARGET.parent.mkdir(parents=True, exist_ok=True)
            TARGET.write_text(without_fonts(console.export_svg(title="pdj run", unique_id="live")))
        finally:
            subprocess.run([*PDJ, "delete", JOB[1]], check=True, stdout=subprocess.DEVNULL)
    print(f"wrote {TARGET.relative_to(ROOT)}")


def without_fonts(svg: str) -> str:
    """Rich names a font on another host; without it, the reader's own monospace font is used."""
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def _wait_for(text: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        logs = [Path(pod.log) for pod in SyncTarget(LocalTarget()).job(*JOB).pods if pod.role == "worker"]
        if any(text in log.read_text(errors="replace") for log in logs if log.exists()):
            return
        time.sleep(0.2)
    raise SystemExit(f"no worker printed {text!r} within {TIMEOUT} s")


if __name__ == "__main__":
    main()
