"""The store at the very version of a list, of a deletion and of a restore."""

from __future__ import annotations

from paddlejob.kube.resource import Object
from paddlejob.kube.store import Store

ML = "ml"


def pod(name: str, version: int, uid: str = "u") -> Object:
    return {"metadata": {"namespace": ML, "name": name, "uid": uid, "resourceVersion": str(version)}}


def new_store() -> Store[str]:
    return Store(lambda raw: raw["metadata"]["resourceVersion"], index=lambda value: ("all",))


def test_a_list_knows_of_a_deletion_at_its_own_version():
    store = new_store()
    store.put(pod("a", 5))
    store.prune(set(), version=4)
    assert store.get(ML, "a") == "5"
    store.prune(set(), version=5)
    assert store.get(ML, "a") is None


def test_the_same_version_again_is_no_change():
    store = new_store()
    seen: list[tuple[str | None, str | None]] = []
    store.add_event_handler(lambda old, new: seen.append((old, new)))
    store.put(pod("a", 5))
    store.put(pod("a", 5))
    assert seen == [(None, "5")]


def test_an_object_is_deleted_up_to_the_version_of_its_deletion():
    store = new_store()
    store.remove((ML, "a"), "u", 5)
    store.put(pod("a", 5))
    assert store.get(ML, "a") is None
    store.put(pod("a", 6))
    assert store.get(ML, "a") == "6"


def test_an_older_deletion_does_not_weaken_a_newer_one():
    store = new_store()
    store.remove((ML, "a"), "u", 9)
    store.remove((ML, "a"), "u", 3)
    store.put(pod("a", 8))
    assert store.get(ML, "a") is None


def test_after_a_restore_the_values_stay_until_they_are_listed_again_and_deletions_are_forgotten():
    store = new_store()
    store.put(pod("a", 900))
    store.remove((ML, "b"), "v", 901)
    store.reset_versions()
    assert (store.get(ML, "a"), store.by_index("all"), len(store)) == ("900", ["900"], 1)
    store.put(pod("b", 1, uid="v"))
    store.put(pod("a", 0))
    assert (store.get(ML, "a"), store.get(ML, "b")) == ("0", "1")


def test_clearing_reports_every_object_as_deleted():
    store = new_store()
    store.put(pod("a", 1))
    store.put(pod("b", 2, uid="v"))
    seen: list[tuple[str | None, str | None]] = []
    store.add_event_handler(lambda old, new: seen.append((old, new)))
    store.clear()
    assert (len(store), list(store), store.by_index("all")) == (0, [], [])
    assert seen == [("1", None), ("2", None)]
