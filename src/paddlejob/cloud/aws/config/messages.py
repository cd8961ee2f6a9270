"""Error messages for cluster.yaml: each says which setting, what is wrong with it and what to change. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic_core import ErrorDetails

_REASONS = {
    "greater_than_equal": "is too small; use {ge} or more",
    "less_than_equal": "is too large; use {le} or less",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "is not an integer; use one, without quotes"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "is not a boolean; use true or false"),
    "string_type": "is not a string; put it in quotes",
    "list_type": "is not a list; use [ONE, TWO]",
    "too_short": "is empty; list at least one item",
}


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
        return f"{path} has no value; set one or remove the line"
    return f"{path}: {error['input']!r} {_reason(error)}"


def _reason(error: ErrorDetails) -> str:
    context: dict[str, Any] = error.get("ctx", {})
    if error["type"] == "value_error":
        return str(context["error"])
    reason = _REASONS.get(error["type"])
    return reason.format(**context) if reason else f"is invalid: {error['msg']}"
