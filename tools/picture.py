"""`make picture`: docs/images/live.svg, the live view of `pdj run` as it really is, taken while wide & deep trains."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from paddlejob.cli.run.live import picture
from paddlejob.cli.targets.local import LocalTarget

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs/images/live.svg"
FILE = ROOT / "deploy/examples/wide_and_deep_podip.yaml"
JOB = ("default", "wide-ande-deep")
PDJ = [sys.executable, "-m", "paddlejob"]
A_GOOD_MOMENT = "epoch 4/"
PATIENCE = 180


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["PADDLEJOB_STATE"] = scratch
        subprocess.run([*PDJ, "run", "--detach", str(FILE)], check=True)
        try:
            _wait_for(A_GOOD_MOMENT)
            console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
            console.print("[bold]$ pdj run wide_and_deep.yaml[/bold]\n")
            console.print(picture(LocalTarget().job(*JOB)))
            TARGET.parent.mkdir(parents=True, exist_ok=True)
            console.save_svg(str(TARGET), title="pdj run", unique_id="live")
        finally:
            subprocess.run([*PDJ, "delete", JOB[1]], check=True, stdout=subprocess.DEVNULL)
    print(f"wrote {TARGET.relative_to(ROOT)}")


def _wait_for(words: str) -> None:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        logs = [Path(pod.log) for pod in LocalTarget().job(*JOB).pods if pod.role == "worker"]
        if any(words in log.read_text(errors="replace") for log in logs if log.exists()):
            return
        time.sleep(0.2)
    raise SystemExit(f"no worker said {words!r} within {PATIENCE} s")


if __name__ == "__main__":
    main()
