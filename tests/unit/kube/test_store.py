"""The store: lists, watches and our own writes arrive in any order, and the newest state wins."""

from __future__ import annotations

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
    store.remove((ML, "a"), "uid-a", 2)
    for late in (3, 5):
        store.put(pod("a", late))
        assert store.get(ML, "a") is None
    store.put(pod("a", 6))
    assert store.get(ML, "a") == ("job", "at 6"), "it had only left the selector"


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


def test_a_list_removes_what_it_lacks_but_not_what_is_newer_than_it() -> None:
    store = new_store()
    for name, version in (("gone", 10), ("kept", 4), ("ours", 11)):
        store.put(pod(name, version))
    store.prune({(ML, "kept")}, version=10)
    assert list(store) == [("job", "at 4"), ("job", "at 11")]


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


def test_after_a_restore_from_backup_smaller_versions_are_accepted_and_values_stay_until_the_list_replaces_them():
    """Were they dropped, every job would look as if it had lost its pods."""
    seen: list[tuple[object, object]] = []
    store = new_store()
    store.put(pod("a", 800))
    store.put(pod("gone", 801))
    store.remove((ML, "b"), "uid-b", 900)
    store.add_event_handler(lambda old, new: seen.append((old and old[1], new and new[1])))
    store.reset_versions()
    assert (store.get(ML, "a"), store.by_index("job"), seen) == (("job", "at 800"), list(store), [])
    store.put(pod("a", 0))
    store.put(pod("b", 11))
    store.prune({(ML, "a"), (ML, "b")}, version=11)
    assert seen == [("at 800", "at 0"), (None, "at 11"), ("at 801", None)]
    store.put(pod("b", 10))
    assert store.by_index("job") == [("job", "at 0"), ("job", "at 11")], "from then on versions count again"


def test_clearing_reports_every_object_as_deleted():
    store = new_store()
    store.put(pod("a", 1))
    store.put(pod("b", 2))
    seen: list[tuple[object, object]] = []
    store.add_event_handler(lambda old, new: seen.append((old and old[1], new)))
    store.clear()
    assert (len(store), list(store), store.by_index("job")) == (0, [], [])
    assert seen == [("at 1", None), ("at 2", None)]


def test_a_deletion_is_remembered_longer_than_a_response_can_be_late(monkeypatch: pytest.MonkeyPatch) -> None:
    store, now = new_store(), [1000.0]
    monkeypatch.setattr(store_module.time, "monotonic", lambda: now[0])
    store.remove((ML, "a"), "uid-a")
    now[0] += store_module.TOMBSTONE_SECONDS
    store.remove((ML, "b"), "uid-b")
    store.put(pod("a", 1))
    assert len(store) == 0
    now[0] += 1
    store.remove((ML, "c"), "uid-c")
    store.put(pod("a", 1))
    store.put(pod("b", 1))
    assert list(store) == [("job", "at 1")], "only the first was long ago"


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
