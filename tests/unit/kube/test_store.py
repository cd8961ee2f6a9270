"""The store: lists, watches and our own writes arrive in any order, and the newest state wins."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlejob.kube import store as store_module
from paddlejob.kube.resource import Object
from paddlejob.kube.store import Store

ML = "ml"


def pod(name: str, version: int, *, uid: str = "", owner: str = "job", phase: str = "") -> Object:
    metadata = {"namespace": ML, "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "owner": owner, "phase": phase or f"at {version}"}


def new_store() -> Store[tuple[str, str]]:
    return Store(lambda raw: (raw["owner"], raw["phase"]), index=lambda value: (value[0],))


def test_a_newer_state_replaces_an_older_one_and_never_the_other_way_round() -> None:
    store = new_store()
    store.put(pod("a", 9))
    store.put(pod("a", 10))
    store.put(pod("a", 9))
    assert store.get(ML, "a") == ("job", "at 10"), "9 is less than 10, as a number"


def test_an_index_finds_objects_by_what_they_have_now() -> None:
    store = new_store()
    store.put(pod("a", 1, owner="x"))
    store.put(pod("b", 2, owner="x"))
    store.put(pod("a", 3, owner="y"))
    assert store.by_index("x") == [("x", "at 2")]
    assert store.by_index("y") == [("y", "at 3")]
    store.remove((ML, "b"), "uid-b", 4)
    assert store.by_index("x") == []
    assert store.by_index("never seen") == []


def test_a_deleted_object_does_not_come_back_by_a_late_event() -> None:
    store = new_store()
    store.put(pod("a", 1))
    store.remove((ML, "a"), "uid-a", 5)
    store.put(pod("a", 3))
    assert store.get(ML, "a") is None


def test_an_object_that_we_deleted_stays_deleted_whatever_the_watch_still_says() -> None:
    store = new_store()
    store.put(pod("a", 1))
    store.remove((ML, "a"), "uid-a")
    store.put(pod("a", 7))
    assert len(store) == 0


def test_a_new_object_of_the_same_name_is_not_mistaken_for_the_old_one() -> None:
    store = new_store()
    store.put(pod("a", 1, uid="old"))
    store.put(pod("a", 5, uid="new"))
    store.remove((ML, "a"), "old", 4)
    assert store.get(ML, "a") == ("job", "at 5")


def test_an_object_that_left_the_selector_may_match_it_again() -> None:
    store = new_store()
    store.put(pod("a", 1))
    store.remove((ML, "a"), "uid-a", 2)
    store.put(pod("a", 3))
    assert store.get(ML, "a") == ("job", "at 3")


def test_a_list_removes_what_it_lacks_but_not_what_is_newer_than_it() -> None:
    store = new_store()
    store.put(pod("gone", 3))
    store.put(pod("kept", 4))
    store.put(pod("ours", 12))
    store.prune({(ML, "kept")}, version=10)
    assert [store.get(ML, name) for name in ("gone", "kept", "ours")] == [
        None,
        ("job", "at 4"),
        ("job", "at 12"),
    ]


def test_event_handlers_are_called_once_per_change() -> None:
    seen: list[tuple[object, object]] = []
    store = new_store()
    store.add_event_handler(lambda old, new: seen.append((old and old[1], new and new[1])))
    store.put(pod("a", 1))
    store.put(pod("a", 1))
    store.put(pod("a", 2))
    store.remove((ML, "a"), "uid-a", 3)
    store.remove((ML, "a"), "uid-a", 3)
    assert seen == [(None, "at 1"), ("at 1", "at 2"), ("at 2", None)]


def test_a_handler_that_fails_does_not_affect_the_others(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[object] = []
    store = new_store()

    def fail(old: object, new: object) -> None:
        raise ValueError("no")

    store.add_event_handler(fail)
    store.add_event_handler(lambda old, new: seen.append(new))
    store.put(pod("a", 1))
    assert seen == [("job", "at 1")]
    assert "an event handler failed" in caplog.text


def test_an_object_that_cannot_be_read_is_ignored_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = new_store()
    broken = pod("bad", 1)
    del broken["owner"]
    store.put(broken)
    store.put(pod("good", 2))
    assert len(store) == 1
    assert "ml/bad" in caplog.text


def test_after_a_restore_from_backup_smaller_versions_are_accepted() -> None:
    store = new_store()
    store.put(pod("a", 900))
    store.put(pod("b", 901))
    store.reset_versions()
    store.put(pod("a", 5))
    store.prune({(ML, "a")}, version=6)
    assert store.get(ML, "a") == ("job", "at 5")
    assert store.get(ML, "b") is None
    assert store.by_index("job") == [("job", "at 5")]


def test_old_tombstones_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "TOMBSTONE_SECONDS", -1.0)
    store = new_store()
    for number in range(100):
        store.put(pod("a", number + 1, uid=f"uid-{number}"))
        store.remove((ML, "a"), f"uid-{number}", number + 1)
    assert len(store._tombstones) <= 2


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, Object]]:
    """What happened on a server, in order: puts and deletes of a few names."""
    happened: list[tuple[str, Object]] = []
    alive: dict[str, str] = {}
    for version in range(1, draw(st.integers(1, 20)) + 1):
        name = draw(st.sampled_from("abc"))
        if name in alive and draw(st.booleans()):
            happened.append(("DELETED", pod(name, version, uid=alive.pop(name))))
        else:
            uid = alive.setdefault(name, f"{name}-born-{version}")
            happened.append(("PUT", pod(name, version, uid=uid)))
    return happened


@given(histories(), st.data())
def test_a_watch_with_late_responses_in_between_ends_at_the_newest_state(
    happened: list[tuple[str, Object]], data: st.DataObject
) -> None:
    """The response to a write of our own may arrive before its watch event, after it, or long after."""
    store = new_store()
    truth: dict[str, str] = {}
    for type_, raw in happened:
        name = raw["metadata"]["name"]
        truth.pop(name, None) if type_ == "DELETED" else truth.update({name: raw["phase"]})
        for _ in range(data.draw(st.integers(0, 2))):
            kind, response = data.draw(st.sampled_from(happened))
            if kind == "PUT":
                store.put(response)
            else:
                store.remove((ML, response["metadata"]["name"]), response["metadata"]["uid"])
        if type_ == "DELETED":
            store.remove((ML, name), raw["metadata"]["uid"], int(raw["metadata"]["resourceVersion"]))
        else:
            store.put(raw)
    for type_, raw in happened:
        if type_ == "PUT":
            store.put(raw)
    known = {name: value[1] for name in "abc" if (value := store.get(ML, name))}
    assert known == truth
    assert sorted(value[1] for value in store.by_index("job")) == sorted(truth.values())


def test_after_a_restore_the_values_known_so_far_stay_until_the_list_replaces_them():
    """Were they dropped, every job would look as if it had lost its pods."""
    seen: list[tuple[str | None, str | None]] = []
    store: Store[str] = Store(lambda raw: raw["data"], lambda value: (value[:1],))
    store.put(stored("a", 800, "before"))
    store.remove(("ml", "b"), "uid-b", 900)
    store.add_event_handler(lambda old, new: seen.append((old, new)))
    store.reset_versions()
    assert (store.get("ml", "a"), store.by_index("b"), seen) == ("before", ["before"], [])
    store.put(stored("a", 10, "restored"))
    store.put(stored("b", 11, "back"))
    assert (store.get("ml", "a"), store.get("ml", "b")) == ("restored", "back")
    assert seen == [("before", "restored"), (None, "back")]
    store.put(stored("a", 9, "older"))
    assert store.get("ml", "a") == "restored", "from then on versions count again"


def test_what_a_list_after_a_restore_lacks_is_removed():
    store: Store[str] = Store(lambda raw: raw["data"], lambda value: ())
    store.put(stored("a", 800, "before"))
    store.reset_versions()
    store.prune(set(), 20)
    assert len(store) == 0


def stored(name: str, version: int, data: str) -> dict[str, Any]:
    metadata = {"namespace": "ml", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "data": data}
