"""What is wrong with cluster.yaml, in words: each fault says where, what, and what to change. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic_core import ErrorDetails

_NOT_A_NUMBER = ("int_parsing", "int_type", "int_from_float")
_NEITHER = ("bool_parsing", "bool_type")


def fault(error: ErrorDetails, settings: Iterable[str]) -> str:
    """One of pydantic's errors in our words. `settings` are the names that there are."""
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"{path}: is missing; add it"
    if error["type"] in ("extra_forbidden", "invalid_key"):
        near = difflib.get_close_matches(path, list(settings), n=1, cutoff=0.5)
        return f"{path}: is no setting; " + (f"did you mean {near[0]}?" if near else "remove it")
    if error["input"] is None:
        return f"{path}: is empty; give it a value, or remove the line"
    return f"{path}: is {error['input']!r}, {_reason(error)}"


def _reason(error: ErrorDetails) -> str:
    context: dict[str, Any] = error.get("ctx", {})
    kind = error["type"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "greater_than_equal":
        return f"too small; use {context['ge']} or more"
    if kind == "less_than_equal":
        return f"too large; use {context['le']} or less"
    if kind in _NOT_A_NUMBER:
        return "no whole number; write one, without quotes"
    if kind in _NEITHER:
        return "neither true nor false; write one of them"
    if kind == "string_type":
        return "no text; put it in quotes"
    if kind == "list_type":
        return "no list; write [ONE, TWO]"
    if kind == "too_short":
        return "an empty list; name at least one"
    return error["msg"]
