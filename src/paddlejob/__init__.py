"""Train PaddlePaddle models on more than one process: on a laptop, on one server, on a Kubernetes cluster."""

__version__ = "0.1.0"
