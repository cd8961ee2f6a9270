"""Server-sent events: a response that stays open and carries JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import orjson
from aiohttp import web

from paddlejob.errors import PaddleJobError

MOST_STREAMS = 256
"""Each costs a task and a few kilobytes; a page needs one."""
HEARTBEAT = b": alive\n\n"


class Streams:
    """The open streams of a server, so that it can refuse too many and end all of them at once."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()

    def end(self) -> None:
        for task in self.tasks:
            task.cancel()

    async def send(self, request: web.Request, messages: AsyncIterator[Any]) -> web.StreamResponse:
        """Send each message as one event, and None as a comment; an error that users can act on as its own event."""
        if len(self.tasks) >= MOST_STREAMS:
            return web.json_response({"error": f"{MOST_STREAMS} pages are open; close some of them"}, status=503)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            await response.prepare(request)
            async with aclosing(messages) as open_messages:  # type: ignore[type-var]
                await _send_all(response, open_messages)
        except ConnectionError:
            pass
        finally:
            self.tasks.discard(task)
        return response


async def _send_all(response: web.StreamResponse, messages: AsyncIterator[Any]) -> None:
    try:
        async for message in messages:
            await response.write(HEARTBEAT if message is None else event("message", message))
        await response.write(event("end", {}))
    except PaddleJobError as error:
        await response.write(event("problem", {"error": str(error)}))


def event(kind: str, message: Any) -> bytes:
    """JSON has no bare newline, so one data line suffices."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(message))
