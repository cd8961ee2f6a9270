"""What an author who wrote a value of the wrong form most likely meant, as it is written in a job file."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from paddlejob.api.fault import Path

SHELL = re.compile(r"&&|\|\||[|;<>$`*\n]")
UNIT = re.compile(r"(?P<number>[0-9.]+) ?(?P<prefix>[kmgt])(?:i?b|i)?", re.IGNORECASE)


def corrected(path: Path, value: Any, types: list[str]) -> str:
    """The field with a value of these types; empty if it is not plain what was meant."""
    field = str(next((step for step in reversed(path) if isinstance(step, str)), ""))
    match field, value:
        case "command" | "args", str() if types == ["array"]:
            return f"{field}: {as_arguments(value, shell=field == 'command')}"
        case "env", dict() if types == ["array"] and value and _are_plain(value.values()):
            return f"{field}: [{', '.join(variable(name, one) for name, one in value.items())}]"
        case "env", str() if types == ["object"] and "=" in value:
            return f"- {variable(*value.split('=', 1))}"
        case "ports", int() if types == ["object"]:
            return f"- containerPort: {value}"
        case "volumeMounts", str() if types == ["object"]:
            return f"- {{name: NAME, mountPath: {value}}}, with the NAME of a volume of the pod"
        case _, bool() if types == ["integer"]:
            return f"{field}: {int(value)}"
    return ""


def as_arguments(command: str, *, shell: bool = True) -> str:
    """A command line as a list, for a shell where it needs one."""
    try:
        arguments = shlex.split(command)
    except ValueError:
        arguments = []
    if shell and (not arguments or SHELL.search(command)):
        arguments = ["bash", "-c", command]
    return json.dumps(arguments or command.split(), ensure_ascii=False)


def unnamed_variable(path: Path, value: Any) -> str:
    """An entry of `env` in which the name of the variable is a field; empty if this is another mistake."""
    is_entry = len(path) > 1 and path[-2] == "env" and isinstance(value, Mapping) and len(value) == 1
    return f"- {variable(*next(iter(value.items())))}" if is_entry and _are_plain(value.values()) else ""


def variable(name: str, value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{{name: {name}, value: {json.dumps(text, ensure_ascii=False)}}}"


def quantity(text: object) -> str:
    """As Kubernetes writes it; empty if the unit is unknown."""
    found = UNIT.fullmatch(str(text).strip())
    return f"{found['number']}{found['prefix'].upper()}i" if found else ""


def option(value: object, options: Iterable[object]) -> str:
    """The one that differs only in upper and lower case, if there is one."""
    return next((str(one) for one in options if str(one).lower() == str(value).lower()), "")


def _are_plain(values: Iterable[object]) -> bool:
    return all(isinstance(value, str | int | float) for value in values)
