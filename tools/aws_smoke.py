"""Try `pdj aws` on a real account: up, a change that fails, scale, another type, destroy. Costs money; cleans up.

Run it as a user with the printed policy to try the policy as well:  python tools/aws_smoke.py --zone us-west-2a
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

NAME = "pdj-smoke"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--region", default="us-west-2")
    parser.add_argument("--zone", required=True, help="availability zone of the nodes")
    parser.add_argument("--yes", action="store_true", help="do not ask before resources are created")
    options = parser.parse_args()
    if not options.yes and input(f"This creates cluster {NAME} and costs a few dollars. Continue? [y/N] ") != "y":
        return 1
    with tempfile.TemporaryDirectory(prefix="pdj-smoke-") as directory:
        smoke = Smoke(Path(directory))
        try:
            smoke.run(options.region, options.zone)
        finally:
            smoke.pdj("destroy", "--yes", check=False)
    print("\n".join([*smoke.results, "everything was destroyed; check the console that no stack is left"]))
    return 0 if all(line.startswith("ok") for line in smoke.results) else 1


class Smoke:
    """The steps, on one assets directory."""

    def __init__(self, assets: Path) -> None:
        self.assets = assets
        self.results: list[str] = []

    def run(self, region: str, zone: str) -> None:
        self.step("init", "init", f"--cluster-name={NAME}", f"--region={region}", f"--availability-zone={zone}")
        self.step("validate", "validate")
        self.step("up", "up")
        self.step("status", "status")
        self.step("no changes", "up")
        self.fail_an_update()
        self.step("scale", "scale", "2")
        self.edit("workerInstanceType: m5.xlarge", "workerInstanceType: m5.large")
        self.step("another type", "up", "--yes")
        self.step("add-ons and image", "upgrade", "--yes")
        self.step("keep data", "destroy", "--keep-data")
        self.step("take data up", "up")
        self.step("destroy", "destroy", "--yes")

    def fail_an_update(self) -> None:
        """EKS accepts no administrator that does not exist; the update has to be rolled back with a reason."""
        path = self.assets / "cluster.yaml"
        before = path.read_text()
        path.write_text(f"{before}administratorArn: arn:aws:iam::123456789012:role/pdj-smoke-does-not-exist\n")
        failed = self.pdj("up", "--yes", check=False) != 0
        self.results.append(f"{'ok    ' if failed else 'FAILED'} a change that fails is rolled back")
        path.write_text(before)
        self.step("up after a failed change", "up", "--yes")

    def step(self, what: str, *arguments: str) -> None:
        self.results.append(f"FAILED {what}")
        self.pdj(*arguments)
        self.results[-1] = f"ok     {what}"

    def edit(self, old: str, new: str) -> None:
        path = self.assets / "cluster.yaml"
        path.write_text(path.read_text().replace(old, new))

    def pdj(self, *arguments: str, check: bool = True) -> int:
        command = [sys.executable, "-m", "paddlejob", "aws", *arguments, "--assets", str(self.assets)]
        print("$ pdj aws", *arguments, flush=True)
        return subprocess.run(command, check=check, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
