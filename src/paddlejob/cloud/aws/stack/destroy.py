"""Delete a cluster, with or without its data, and name what blocks the deletion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paddlejob.cloud.aws.stack import data
from paddlejob.cloud.aws.stack.blockers import blockers
from paddlejob.cloud.aws.stack.events import Event
from paddlejob.cloud.aws.stack.leaked import delete_leaked
from paddlejob.cloud.aws.stack.stack import Stack, Stacks, StackState, describe_failure
from paddlejob.errors import NotPossible

Meanwhile = Callable[[list[Event]], None]


@dataclass(frozen=True)
class Preflight:
    """What is known before anything is deleted. A state is None if the stack does not exist."""

    cluster: StackState | None
    data: StackState | None
    blockers: list[str]
    stored_data: list[str]

    @property
    def data_deletion_started(self) -> bool:
        """Whether an earlier run started to delete the data, so that there is nothing left to confirm."""
        return self.data is not None and self.data.status == "DELETE_IN_PROGRESS"


def preflight(stacks: Stacks) -> Preflight:
    """Collect what blocks the deletion and which data would be lost."""
    cluster, kept = stacks.cluster.find(), stacks.data.find()
    found = []
    if cluster and not cluster.in_progress:
        found = blockers(stacks.cluster.aws, cluster.name, stacks.cluster.resources(), ignore_leaked=True)
    stored = data.stored_data(stacks.data.aws, stacks.data.resources()) if kept else []
    return Preflight(cluster, kept, found, stored)


def destroy(stacks: Stacks, found: Preflight, keep_data: bool = False, wait: bool = True) -> bool:
    """Delete the cluster, then its data. Returns whether the data remains.

    The file system can be deleted only after its mount targets, so without `wait` the data remains at first.
    """
    if found.cluster:
        _delete(stacks.cluster, found.cluster, wait, _Sweeper(stacks.cluster))
    if found.data is None:
        return False
    if keep_data or (found.cluster and not wait):
        return True
    if bucket := stacks.data.resources().get("Bucket"):
        data.empty_bucket(stacks.data.aws, bucket, stacks.data.say)
    _delete(stacks.data, found.data, wait)
    return False


class _Sweeper:
    """Deletes leaked network interfaces once the nodes are gone, before the cluster and the network are."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        resources = stack.resources()
        self._vpc = resources.get("Vpc", "")
        self._nodes_exist = "Nodes" in resources

    def __call__(self, events: list[Event]) -> None:
        if any(event.resource == "Nodes" and event.status == "DELETE_COMPLETE" for event in events):
            self._nodes_exist = False
        if self._vpc and not self._nodes_exist:
            delete_leaked(self._stack.aws, self._vpc, self._stack.say)


def _delete(stack: Stack, state: StackState, wait: bool, meanwhile: Meanwhile = lambda _: None) -> None:
    if state.in_progress and state.status != "DELETE_IN_PROGRESS":
        stack.say(f"stack {state.name} is {state.status}: waiting for it to finish")
        state, _ = stack.follow(state.id)
    if state.status != "DELETE_IN_PROGRESS":
        meanwhile([])
        stack.delete()
    if wait:
        _wait_until_deleted(stack, state, meanwhile)


def _wait_until_deleted(stack: Stack, state: StackState, meanwhile: Meanwhile) -> None:
    state, failure = stack.follow(state.id, meanwhile)
    if state.deleted:
        return
    found = "".join(f"\n  {blocker}" for blocker in blockers(stack.aws, stack.name, stack.resources()))
    raise NotPossible(f"{describe_failure(state, failure)}; remove the cause and run `{stack.undo}` again{found}")
