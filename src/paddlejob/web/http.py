"""What every route needs: parameters of requests, JSON responses, and errors as responses."""

from __future__ import annotations

import asyncio
import gzip
import logging
from typing import Any

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from paddlejob.errors import BadInput, NoSuchJob, PaddleJobError
from paddlejob.logs.selection import LogSelection, parse_replica
from paddlejob.web.access import refuse
from paddlejob.web.connections import REQUEST_SECONDS

COMPRESS_FROM = 1000
log = logging.getLogger(__name__)


@web.middleware
async def errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors that users can act on become their message; others are logged and say nothing of the inside."""
    try:
        return await handler(request)
    except PaddleJobError as error:
        return refuse(404 if isinstance(error, NoSuchJob) else 400, str(error))
    except web.HTTPException as error:
        return refuse(error.status, error.reason)
    except ConnectionError:
        raise
    except Exception:
        log.exception("%s %s failed", request.method, request.path)
        return refuse(500, "pdj web has failed here; its output has the details.")


def reply(request: web.Request, content: Any) -> web.Response:
    """JSON, compressed where it is worth it."""
    body = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
    headers = {"Content-Type": "application/json; charset=utf-8"}
    if len(body) >= COMPRESS_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = gzip.compress(body, compresslevel=4)
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=body, headers=headers)


async def read_body(request: web.Request) -> dict[str, Any]:
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            body = orjson.loads(await request.read() or b"{}")
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    except ValueError:
        raise BadInput("the body is not JSON") from None
    workers = body.get("workers") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not (workers is None or (type(workers) is int and 0 <= workers <= 100_000)):
        raise BadInput("send an object; workers is a number")
    return body


def log_selection(request: web.Request) -> LogSelection:
    return parse_replica(request.query.get("replica", ""), request.query.get("attempt", ""))


def number(request: web.Request, name: str) -> int:
    text = request.query.get(name, "0")
    if not text.isdecimal() or len(text) > 15:
        raise BadInput(f"{name} is not a number")
    return int(text)
