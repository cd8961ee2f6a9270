"""Turns error responses of the API server into exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from paddlejob.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Overloaded,
)

_BY_CODE: dict[int, type[ApiError]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: Overloaded,
    503: Overloaded,
}


def api_error(code: int, body: bytes, headers: Mapping[str, str], request: str) -> ApiError:
    """The exception for a response; `request` goes into its message."""
    status = _status(body)
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or body[:500].decode(errors="replace").strip() or "no message")
    # A Status inside a watch has its own code; that of the HTTP response was 200.
    code = int(status.get("code") or code)
    kind = AlreadyExists if reason == "AlreadyExists" else _BY_CODE.get(code, ApiError)
    return kind(code, reason or "Unknown", f"{request}: {message}", _seconds(headers.get("Retry-After")))


def is_retriable(error: ApiError) -> bool:
    """Whether the server did nothing and said when to try again."""
    return error.code in (429, 503) and error.retry_after is not None


def _status(body: bytes) -> dict[str, Any]:
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds; a date counts as one second."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        return 1.0
