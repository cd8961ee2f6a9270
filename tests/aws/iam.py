"""Evaluation of IAM policies, for the operators that the printed policies use."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any

Context = Mapping[str, str]
PATTERNS = ("ArnEqualsIfExists", "ArnLike", "StringLike")
OPERATORS = (*PATTERNS, "StringEquals", "ForAnyValue:StringEquals", "ForAllValues:StringEquals")
IF_ABSENT = ("ArnEqualsIfExists", "ForAllValues:StringEquals")  # hold if the request has no such key


def allows(document: Mapping[str, Any], action: str, resource: str = "*", **context: str) -> bool:
    """Whether a statement allows it. `context` are condition keys, with `__` for `:`; an absent key matches none."""
    keys = {name.replace("__", ":"): value for name, value in context.items()}
    return any(
        _matches(statement["Action"], action)
        and _matches(statement["Resource"], resource)
        and _holds(statement.get("Condition", {}), keys)
        for statement in document["Statement"]
        if statement["Effect"] == "Allow"
    )


def permits(document: Mapping[str, Any], action: str, resource: str, **context: str) -> bool:
    """Whether the user may do that directly, in the region of the cluster."""
    return allows(document, action, resource, aws__RequestedRegion="us-west-2", **context)


def role_allows(boundary: Mapping[str, Any], role: str, action: str, resource: str = "*", **context: str) -> bool:
    """Whether a role of this ARN, with a policy that allows everything and this boundary, may do it."""
    return allows(boundary, action, resource, aws__PrincipalArn=role, **context)


def _matches(patterns: str | list[str], value: str) -> bool:
    return any(fnmatch.fnmatchcase(value, p) for p in ([patterns] if isinstance(patterns, str) else patterns))


def _holds(conditions: Mapping[str, Mapping[str, Any]], keys: Context) -> bool:
    return all(
        _fits(operator, wanted, keys[key]) if key in keys else operator in IF_ABSENT
        for operator, wanted_by_key in conditions.items()
        for key, wanted in wanted_by_key.items()
        if _known(operator)
    )


def _fits(operator: str, wanted: str | list[str], value: str) -> bool:
    listed = [wanted] if isinstance(wanted, str) else wanted
    return _matches(listed, value) if operator in PATTERNS else value in listed


def _known(operator: str) -> bool:
    assert operator in OPERATORS, f"cannot evaluate {operator}"
    return True
