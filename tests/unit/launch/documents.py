"""What document 004 sets and logs."""

from __future__ import annotations

from collections.abc import Sequence

ENVIRON = {
    "JOB_NAME": "paddle-cluster-job",
    "JOB_PATH": "/home/jobpath",
    "JOB_NAMESPACE": "default",
    "TRAIN_CONFIG_DIR": "recommendation",
    "CONF_PADDLE_NIC": "eth0",
    "CONF_PADDLE_PORT": "7164",
    "CONF_PADDLE_PORTS_NUM": "2",
    "CONF_PADDLE_PORTS_NUM_SPARSE": "2",
    "CONF_PADDLE_GRADIENT_NUM": "3",
}

ADDRESSES = ("192.168.129.66", "192.168.129.71", "192.168.223.143")
"""Of the document's three pods, by number. The log has another order, that of a Python 2 dict."""

PASSED_ON = [
    "--config=./trainer_config.py", "--trainer_count=4", "--num_passes=10", "--use_gpu=0", "--log_period=50",
    "--dot_period=10", "--saving_period=1", "--local=0",
]  # fmt: skip
"""The arguments of the Job's command."""


def logged(
    addresses: Sequence[str] = ADDRESSES, rank: int = 0, job: str = "/home/jobpath/paddle-cluster-job"
) -> list[str]:
    """The trainer's command line in the document's train.log."""
    before = ["--nics=eth0", "--port=7164", "--ports_num=2", "--comment=paddle_process_by_paddle"]
    peers = [f"--pservers={','.join(addresses)}", "--ports_num_for_sparse=2"]
    return [*before, *peers, *PASSED_ON, f"--trainer_id={rank}", f"--save_dir={job}/output"]


SERVER = [
    "--nics=eth0", "--port=7164", "--ports_num=2", "--ports_num_for_sparse=2", "--num_gradient_servers=3",
    "--comment=paddle_process_by_paddle",
]  # fmt: skip
"""The server's command line, from what the document names."""
