"""Evictions that a pod brought about itself, by what the kubelet says (pkg/kubelet/eviction/helpers.go, 1.22 to 1.36).

A pod that used more than it asked for is the first to go when its node runs low, and one that exceeds a limit of
storage goes in any case. Rebuilding such a job elsewhere changes nothing, so it counts as a failure, with the remedy.
"""

from __future__ import annotations

import re

from paddlejob import contract
from paddlejob.api.quantity import parse_quantity

REASON = "Evicted"
LIMITS = {
    "exceeded its local ephemeral storage limit": "resources.limits.ephemeral-storage",
    "Pod ephemeral local storage usage exceeds": "resources.limits.ephemeral-storage",
    "Usage of EmptyDir volume": "sizeLimit of the volume",
}
"""What the kubelet says about a limit that a pod exceeded, and the field that sets the limit."""
NODE_LOW = re.compile(r"The node was low on resource: ([a-z-]+)\.")
CONTAINER = re.compile(r"Container (\S+) was using (\S+), request is ([^\s,]+)")
"""Only containers that use more than they request are listed."""
QUANTITY = contract.QUANTITY.strip("^$")
POD = re.compile(rf"Pod \S+ was using (?P<used>{QUANTITY}), request is (?P<requested>{QUANTITY})")
"""Of a pod with resources of its own, which is listed in any case; its containers need no requests."""


def is_self_inflicted(message: str, training_container: str) -> bool:
    """Whether the pod exceeded a limit, or its training container what it requests of the resource that ran low."""
    if any(text in message for text in LIMITS):
        return True
    if NODE_LOW.search(message) is None:
        return False
    whole = POD.search(message)
    if whole:
        return parse_quantity(whole["used"]) > parse_quantity(whole["requested"])
    return any(one[1] == training_container for one in CONTAINER.finditer(message))


def remedy(message: str) -> str:
    """What to change so that the pod is not evicted again."""
    field = next((field for text, field in LIMITS.items() if text in message), "")
    if field:
        return f"write less to its own disk, for example by saving checkpoints to a volume, or raise {field}"
    low = NODE_LOW.search(message)
    resource = low[1] if low else "memory"
    return f"set resources.requests.{resource} to what the program uses, or make it use less"
