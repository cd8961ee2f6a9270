"""What an informer says about its contact with the server, and how often it asks."""

from __future__ import annotations

import asyncio
import time

import pytest

from paddlejob.kube import informer as informer_module

from .conftest import Serve
from .test_informer import Script, pod, running, short_backoff, until

__all__ = ["short_backoff"]


async def test_a_resource_that_is_absent_counts_as_contact_and_is_asked_for_now_and_then(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(informer_module, "ABSENT_RETRY_SECONDS", 3600.0)
    script = Script([500, 404], [])
    began = time.monotonic()
    async with running(serve, script, optional=True) as informer:
        await until(lambda: informer.absent)
        await asyncio.sleep(0.1)
        assert script.listed == 2, "and not again for an hour"
        assert (informer.last_error, informer.failing_since) == ("", None)
        assert informer.last_contact >= began


async def test_since_when_a_list_fails_is_known_until_it_succeeds(serve: Serve):
    script = Script([500, 500, (5, [pod("a", 3)])], [])
    async with running(serve, script) as informer:
        await until(lambda: informer.last_error)
        first = informer.failing_since
        assert first is not None
        await until(lambda: script.listed == 2)
        assert informer.failing_since in (first, None), "since the first failure"
        await until(lambda: informer.get("ml", "a"))
        await until(lambda: informer.failing_since is None)


async def test_an_event_of_a_watch_is_contact(serve: Serve):
    script = Script([(5, [])], [[("ADDED", pod("a", 6)), None]])
    async with running(serve, script) as informer:
        await until(lambda: informer.get("ml", "a"))
        seen = informer.last_contact
        assert time.monotonic() - seen < 30
        assert list(informer) == ["6"]
        assert len(informer) == 1


async def test_an_overloaded_server_does_not_have_to_list_everything_again(serve: Serve):
    """Overload ends a watch; the version is still good."""
    busy = ("ERROR", {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "busy"})
    script = Script([(5, [])], [[busy], [None]])
    async with running(serve, script):
        await until(lambda: len(script.watched_from) == 2)
    assert script.watched_from == ["5", "5"]
    assert script.listed == 1
