"""The types of what fixtures give, and names that tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlejob.cloud.aws.config.cluster import ClusterConfig

Configured = Callable[..., ClusterConfig]
Pdj = Callable[..., str]
Made = dict[str, dict[str, Any]]
ACCOUNT = "123456789012"
NAMED = ("--cluster-name=paddle-cluster", "--region=us-west-2", "--availability-zone=us-west-2a")
