"""Error messages for cluster.yaml: each says which setting, what is wrong with it and what to change. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic_core import ErrorDetails

_INTEGER_ERRORS = ("int_parsing", "int_type", "int_from_float")
_BOOLEAN_ERRORS = ("bool_parsing", "bool_type")


def describe(error: ErrorDetails, settings: Iterable[str]) -> str:
    """Format one pydantic error. `settings` are the names that exist, for suggestions."""
    if not error["loc"]:  # of several settings together
        return _reason(error)
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"{path}: required setting is missing; add it"
    if error["type"] in ("extra_forbidden", "invalid_key"):
        near = difflib.get_close_matches(path, list(settings), n=1, cutoff=0.5)
        return f"{path}: unknown setting; " + (f"did you mean {near[0]}?" if near else "remove it")
    if error["input"] is None:
        return f"{path}: has no value; set one or remove the line"
    return f"{path}: {error['input']!r} {_reason(error)}"


def _reason(error: ErrorDetails) -> str:
    context: dict[str, Any] = error.get("ctx", {})
    kind = error["type"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "greater_than_equal":
        return f"is too small; use {context['ge']} or more"
    if kind == "less_than_equal":
        return f"is too large; use {context['le']} or less"
    if kind in _INTEGER_ERRORS:
        return "is not an integer; use one, without quotes"
    if kind in _BOOLEAN_ERRORS:
        return "is not a boolean; use true or false"
    if kind == "string_type":
        return "is not a string; put it in quotes"
    if kind == "list_type":
        return "is not a list; use [ONE, TWO]"
    if kind == "too_short":
        return "is empty; list at least one item"
    return f"is invalid: {error['msg']}"
