"""Lifecycle hooks: commands that run beside a container after its start or before its end."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]
POST_START, PRE_STOP = "postStart", "preStop"


def hook_of(container: Manifest | None, kind: str) -> Manifest | None:
    """The hook as a container of its own, or None. It shares the volumes of its container, not its processes."""
    handler = ((container or {}).get("lifecycle") or {}).get(kind) or {}
    command = list((handler.get("exec") or {}).get("command") or [])
    if not command and handler.get("sleep"):
        command = ["sleep", str(handler["sleep"].get("seconds") or 0)]
    if not command or container is None:
        return None
    left_out = ("args", "lifecycle", "restartPolicy", "terminationMessagePath")
    kept = {name: value for name, value in container.items() if name not in left_out}
    return {**kept, "name": f"{container['name']}.{kind}", "command": command}


def is_hook(name: str) -> bool:
    """Whether it names a hook: the name of a container has no dot."""
    return "." in name
