"""`make demo`: train wide & deep with two parameter servers and two workers, and report the result."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PDJ = Path(sys.executable).with_name("pdj")
FILE = "deploy/examples/wide_and_deep_podip.yaml"
JOB = "wide-ande-deep"
FINAL = re.compile(r"final auc=(\S+) loss=(\S+) untrained_auc=(\S+)")


def main() -> int:
    print(f"== training {FILE}: 2 parameter servers and 2 workers, real PaddlePaddle, on this machine\n", flush=True)
    start = time.monotonic()
    code = subprocess.run([PDJ, "run", FILE], cwd=ROOT, check=False).returncode
    if code:
        print(f"\nThe demo did not complete. To find out why, run `{PDJ} why {JOB}`.")
        return code
    return report(time.monotonic() - start)


def report(seconds: float) -> int:
    printed = subprocess.run([PDJ, "logs", JOB, "--role", "worker"], capture_output=True, text=True, check=True).stdout
    final = FINAL.search(printed)
    if not final:
        print(f"\nThe job completed, but no worker printed a result. To see the logs, run `{PDJ} logs {JOB}`.")
        return 1
    auc, loss, untrained = final.groups()
    print(f"""
== done in {seconds:.0f} s
   model      wide & deep, click prediction, 2 parameter servers and 2 workers
   result     AUC {auc} (untrained {untrained}), loss {loss}

   next       pdj logs {JOB} --role worker --index 0     the log of a worker
              pdj get {JOB}                              the job, its replicas and the location of their logs
              pdj run deploy/examples/resnet.yaml --cpu    collective training, on the CPU
              pdj plan {FILE}     the objects on a cluster
   (pdj is .venv/bin/pdj)""")
    return 0


if __name__ == "__main__":
    sys.exit(main())
