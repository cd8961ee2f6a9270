"""YAML text as Kubernetes objects. Errors name the file, line and column."""

from __future__ import annotations

from typing import Any

import yaml

from paddlejob.errors import BadInput

MERGE = "tag:yaml.org,2002:merge"
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _DuplicateKey(yaml.constructor.ConstructorError):
    """A key that occurs twice in a mapping."""


class _PlainLoader(Loader):  # type: ignore[misc]
    """Keeps dates as strings, since JSON and so Kubernetes have no dates, and rejects duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
                continue
            if key.value in seen:
                raise _DuplicateKey(problem=f"duplicate key `{key.value}`", problem_mark=key.start_mark)
            seen.add(key.value)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in Loader.yaml_implicit_resolvers.items()
}


def documents(text: str, source: str) -> list[dict[str, Any]]:
    """The objects of a file, with those of a List, without empty documents."""
    try:
        loaded = [one for one in yaml.load_all(text, Loader=_PlainLoader) if one is not None]
    except _DuplicateKey as error:
        raise BadInput(f"{source}{_position(error)}: {_problem(error)}; remove one of them") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{source}{_position(error)}: invalid YAML: {_problem(error)}") from None
    found: list[dict[str, Any]] = []
    for one in loaded:
        if not isinstance(one, dict):
            raise BadInput(f"{source}: a Kubernetes object is a mapping, not {type(one).__name__}: {one!s:.60}")
        found += one.get("items") or [] if one.get("kind") == "List" else [one]
    if not found:
        raise BadInput(f"{source}: is empty; it should contain a PaddleJob (`pdj init` writes one)")
    return found


def _position(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}:{mark.column + 1}" if mark else ""


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or error).replace("\n", " ")
