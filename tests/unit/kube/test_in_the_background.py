"""What runs until it is cancelled, and what our own writes do to a cache."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp import web

from paddlejob.kube.client import Client
from paddlejob.kube.events import EventRecorder
from paddlejob.kube.informer import Informer
from paddlejob.kube.resource import PODS

from .conftest import Serve


async def test_events_are_written_as_they_are_recorded_until_the_recorder_is_cancelled(serve: Serve) -> None:
    arrived: asyncio.Queue[str] = asyncio.Queue()

    async def handler(request: web.Request) -> web.Response:
        sent = await request.json()
        arrived.put_nowait(sent["message"])
        return web.json_response(sent)

    async with Client(await serve(handler)) as client:
        recorder = EventRecorder(client, "paddlejob")
        running = asyncio.create_task(recorder.run())
        for message in ("first", "second"):
            recorder.record(PODS, "ml", "a", "u", reason="Seen", message=message)
            assert await asyncio.wait_for(arrived.get(), 30) == message
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def test_our_own_writes_and_deletions_are_seen_before_the_watch_reports_them() -> None:
    informer = Informer(Client.__new__(Client), PODS, lambda raw: raw["metadata"]["uid"])
    made = {"metadata": {"namespace": "ml", "name": "a", "uid": "u", "resourceVersion": "5"}}
    informer.record_write(made)
    assert (informer.get("ml", "a"), len(informer), list(informer)) == ("u", 1, ["u"])
    informer.record_delete("ml", "a", "another uid")
    assert informer.get("ml", "a") == "u"
    informer.record_delete("ml", "a", "u")
    informer.record_write(made)
    assert informer.get("ml", "a") is None
