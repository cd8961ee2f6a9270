"""What document 004 sets and logs."""

from __future__ import annotations

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

LOGGED = [
    "--nics=eth0",
    "--port=7164",
    "--ports_num=2",
    "--comment=paddle_process_by_paddle",
    "--pservers=192.168.129.66,192.168.129.71,192.168.223.143",
    "--ports_num_for_sparse=2",
    "--config=./trainer_config.py",
    "--trainer_count=4",
    "--num_passes=10",
    "--use_gpu=0",
    "--log_period=50",
    "--dot_period=10",
    "--saving_period=1",
    "--local=0",
    "--trainer_id=0",
    "--save_dir=/home/jobpath/paddle-cluster-job/output",
]
"""The trainer's command line in the document's train.log."""

PASSED_ON = [
    "--config=./trainer_config.py",
    "--trainer_count=4",
    "--num_passes=10",
    "--use_gpu=0",
    "--log_period=50",
    "--dot_period=10",
    "--saving_period=1",
    "--local=0",
]
