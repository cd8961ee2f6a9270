"""Time from `pdj submit` until the workers train, with the code shipped and without, on the test cluster.

python -m bench.submit [ROUNDS]     needs root; see testbed/

Both jobs train the same program with two workers of real PaddlePaddle and run alternately. With --code, the directory
of the program is packed, stored in ConfigMaps and unpacked in every pod; without, the command holds the program as
`python -c` takes it. Goal: training begins at most 5 s later with the code than without.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import record
from testbed.cluster import Cluster
from testbed.images.productimages import DOCUMENTS, push_programs, push_training
from tests.support.cluster_pdj import ClusterPdj
from tests.support.on_cluster import DEPLOYMENT, ROOT

IMAGE = f"{DOCUMENTS}/demo-wide-and-deep:v1"
GOAL_SECONDS = 5.0
WORKERS = 2
FILES = 50
"""Modules beside the program, each of 2 KiB, as a project has them."""
TRAIN = """\
import time
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
model = paddle.DataParallel(paddle.nn.Linear(4, 1))
loss = model(paddle.randn([8, 4])).mean()
loss.backward()
print(f"step=1 at={time.time()}", flush=True)
"""


def main(rounds: int) -> int:
    shipped: list[float] = []
    plain: list[float] = []
    with tempfile.TemporaryDirectory(prefix="bench-submit-") as name, Cluster() as cluster:
        install(cluster)
        pdj = ClusterPdj(cluster, project(Path(name)))  # type: ignore[arg-type]
        measured(pdj, "warm", [], ["python", "-c", TRAIN])
        for number in range(1, rounds + 1):
            plain.append(measured(pdj, f"plain-{number}", [], ["python", "-c", TRAIN]))
            shipped.append(measured(pdj, f"shipped-{number}", ["train.py", "--code", "."], []))
            print(f"round {number}: plain {plain[-1]:.2f} s, with --code {shipped[-1]:.2f} s", flush=True)
    return report(statistics.median(plain), statistics.median(shipped), rounds)


def install(cluster: Cluster) -> None:
    push_programs(cluster.registry, print)
    push_training(cluster.registry, print, [IMAGE])
    cluster.drop_stale_images()
    cluster.kubectl("create", "-f", str(ROOT / "deploy/v1/crd.yaml"), "-f", str(ROOT / "deploy/v1/operator.yaml"))
    cluster.kubectl("-n", "paddle-system", "rollout", "status", DEPLOYMENT, "--timeout=300s")


def project(folder: Path) -> Path:
    (folder / "train.py").write_text(TRAIN)
    (folder / "library").mkdir()
    for number in range(FILES):
        (folder / "library" / f"module_{number}.py").write_text(f"VALUE_{number} = {number}\n" * 100)
    return folder


def measured(pdj: ClusterPdj, name: str, options: list[str], command: list[str]) -> float:
    """Seconds from the command until the last worker has made its first step."""
    begun = time.time()
    done = pdj.run(
        "submit", *options, "--name", name, "--workers", str(WORKERS), "--image", IMAGE, "-n", "default", "--follow",
        *(["--", *command] if command else []),
    )  # fmt: skip
    moments = [float(moment) for moment in re.findall(r"step=1 at=([\d.]+)", done.stdout)]
    if done.returncode or len(moments) != WORKERS:
        raise SystemExit(f"{name} did not train:\n{done.stdout}{done.stderr}")
    pdj.run("delete", name, "--cluster", "-n", "default")
    return max(moments) - begun


def report(plain: float, shipped: float, rounds: int) -> int:
    record("submit", "2 workers", {"plain": plain, "code": shipped})
    print(
        f"with --code, training began {shipped - plain:.2f} s later, {shipped / plain:.2f} times the time "
        f"(medians of {rounds}: {plain:.2f} s and {shipped:.2f} s; goal: at most {GOAL_SECONDS:g} s later)"
    )
    return 0 if shipped - plain <= GOAL_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
