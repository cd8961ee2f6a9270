"""The machine image that an EC2 instance type needs, derived from its name."""

from __future__ import annotations

import re

_PARTS = re.compile(r"(?P<family>[a-z]+)(?P<generation>\d+)?(?P<extra>[-a-z0-9]*)\..+")
_GPU_FAMILIES = frozenset({"g", "gr", "p"})


def has_gpu(instance_type: str) -> bool:
    """g4dn, g5, g6e, gr6, p3, p5 and others have NVIDIA GPUs; g4ad has AMD GPUs, which Paddle's images cannot use."""
    parts = _PARTS.fullmatch(instance_type)
    return bool(parts and parts["family"] in _GPU_FAMILIES and parts["extra"] != "ad")


def is_arm(instance_type: str) -> bool:
    """A "g" after the generation means Graviton (m6g, c7gn, g5g); so does the family a1."""
    parts = _PARTS.fullmatch(instance_type)
    return bool(parts and (parts["family"] == "a" or "g" in parts["extra"]))


def ami_type(instance_type: str) -> str:
    processor = "ARM_64" if is_arm(instance_type) else "x86_64"
    return f"AL2023_{processor}_{'NVIDIA' if has_gpu(instance_type) else 'STANDARD'}"
