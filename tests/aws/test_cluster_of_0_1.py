"""A cluster of paddlejob 0.1 has its data in the stack of the cluster: no verb of this version may change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paddlejob.cloud.aws.config.cluster import ClusterConfig
from paddlejob.cloud.aws.stack import destroy, up
from paddlejob.cloud.aws.stack.stack import Stack, Stacks
from paddlejob.cloud.aws.stack.upgrade import upgrade

from .scripted import Script, message

Configured = Callable[..., ClusterConfig]
VERBS: dict[str, Callable[[Stack, ClusterConfig], Any]] = {
    "up": lambda stack, config: up.up(Stacks(stack, stack), config),
    "upgrade": lambda stack, config: upgrade(stack, "", lambda *_: None, lambda _: None),
    "destroy": lambda stack, config: destroy.preflight(Stacks(stack, stack)),
}


@pytest.mark.parametrize("verb", VERBS)
def test_the_verb_asks_for_nothing_and_says_how_to_move_the_data(
    stack: Stack, configured: Configured, verb: str
) -> None:
    """The script holds no other request; an upgrade, for one, would ask EKS for the version."""
    with Script(stack) as aws:
        for _ in range(2 if verb == "destroy" else 1):
            aws.stack_is("CREATE_COMPLETE", KeepData="no", AmiType="AL2023_x86_64_STANDARD")
        text = message(lambda: VERBS[verb](stack, configured()))
    assert text.startswith("paddlejob 0.1 created cluster paddle-cluster, with its data in the same stack")
    assert text.endswith("create the cluster with this version and the fileSystemId that it prints")
