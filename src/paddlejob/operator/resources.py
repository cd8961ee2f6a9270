"""The kinds of object that only paddlejob knows."""

from __future__ import annotations

from paddlejob import contract
from paddlejob.kube.resource import Resource

PADDLEJOBS = Resource(contract.GROUP, contract.VERSION, contract.PLURAL, kind=contract.KIND)
POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", kind="PodGroup")
