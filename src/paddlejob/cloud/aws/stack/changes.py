"""A change of an existing stack: previewed as a change set, confirmed, then executed."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paddlejob.cloud.aws.stack.stack import Stack
from paddlejob.errors import NotPossible

_WITHOUT_CHANGES = ("didn't contain changes", "No updates are to be performed")
# Properties of the node group whose change makes EKS replace every node, although CloudFormation keeps the group.
_ROLLS_NODES = {"LaunchTemplate", "ReleaseVersion", "Version"}


@dataclass(frozen=True)
class Change:
    """The change of one resource."""

    action: str
    resource: str
    type: str
    properties: frozenset[str]
    replaces: bool

    @classmethod
    def parse(cls, item: dict[str, Any]) -> Change:
        change = item["ResourceChange"]
        targets = [detail.get("Target", {}) for detail in change.get("Details", [])]
        return cls(
            action=change["Action"],
            resource=change["LogicalResourceId"],
            type=change["ResourceType"],
            properties=frozenset(target["Name"] for target in targets if "Name" in target),
            replaces=change.get("Replacement") == "True",
        )

    @property
    def disruptive(self) -> bool:
        return self.replaces or self.action == "Remove" or bool(self.effect)

    @property
    def effect(self) -> str:
        """Say what the change does to the nodes, if anything."""
        if self.resource != "Nodes" or self.action != "Modify":
            return ""
        if self.replaces:
            return "creates new nodes, then deletes the old ones with their pods"
        return "replaces every node in turn and evicts its pods" if self.properties & _ROLLS_NODES else ""

    def line(self) -> str:
        notes = self.effect or ("replaced" if self.replaces else "")
        changed = ", ".join(sorted(self.properties))
        return f"  {self.action:<8} {self.resource:<22} {changed}" + (f" ({notes})" if notes else "")


# Shows the changes and raises an error if the user does not want them.
Confirm = Callable[[str, list[Change]], None]


def accept(_: str, __: list[Change]) -> None:
    """Confirm without asking."""


def start_change(stack: Stack, confirm: Confirm, **request: Any) -> bool:
    """Start the change after confirmation. Returns False if there is nothing to change."""
    name = f"pdj-{uuid.uuid4()}"
    names = {"StackName": stack.name, "ChangeSetName": name}
    stack.aws.call("cloudformation", "create_change_set", ChangeSetType="UPDATE", **names, **request)
    found = _wait(stack, names)
    if found["Status"] == "FAILED":
        stack.aws.call("cloudformation", "delete_change_set", **names)
        if any(text in found.get("StatusReason", "") for text in _WITHOUT_CHANGES):
            return False
        raise NotPossible(f"CloudFormation rejected the change of {stack.name}: {found.get('StatusReason')}")
    changes = stack.aws.items("cloudformation", "describe_change_set", "Changes", **names)
    try:
        confirm(stack.name, [Change.parse(item) for item in changes])
    except BaseException:
        stack.aws.call("cloudformation", "delete_change_set", **names)
        raise
    # A failed update is rolled back, so that the cluster is never worse than before.
    stack.start("execute_change_set", ChangeSetName=name, DisableRollback=False)
    return True


def _wait(stack: Stack, names: dict[str, str]) -> dict[str, Any]:
    while True:
        found = stack.aws.call("cloudformation", "describe_change_set", **names)
        if found["Status"] not in ("CREATE_PENDING", "CREATE_IN_PROGRESS"):
            return found
        stack.sleep(stack.poll_interval)
