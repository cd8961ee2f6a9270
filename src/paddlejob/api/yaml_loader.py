"""A YAML loader that accepts what JSON can express and reports the line of everything else."""

from __future__ import annotations

import math
from typing import Any

import yaml

from paddlejob.api.yaml_problem import YamlProblem, describe

TAG = "tag:yaml.org,2002:"
MERGE = f"{TAG}merge"
JSON_TAGS = {f"{TAG}{name}" for name in ("map", "seq", "str", "null", "bool", "int", "float", "merge", "value")}
MOST_NODES = 200_000
"""Aliases can make a few lines stand for billions of nodes; a large job file has some thousands."""
MOST_LEVELS = 100
Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _JsonLoader(Base):  # type: ignore[misc]
    """Keeps dates as strings and rejects numbers that JSON lacks."""

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        convert = Base.construct_yaml_int if node.tag == f"{TAG}int" else Base.construct_yaml_float
        try:
            number: int | float = convert(self, node)
            if math.isfinite(number):
                return number
        except (ValueError, OverflowError):
            pass
        raise YamlProblem(f"{node.value:.40} is not a number", "write it in quotes or correct it", node.start_mark)


_JsonLoader.add_constructor(f"{TAG}int", _JsonLoader.construct_number)
_JsonLoader.add_constructor(f"{TAG}float", _JsonLoader.construct_number)
_JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{TAG}timestamp"]
    for first, resolvers in Base.yaml_implicit_resolvers.items()
}


def load(text: str) -> list[tuple[Any, yaml.Node]]:
    """The documents that are not empty, each with its node; raises YamlProblem."""
    loader = None
    found = []
    try:
        _check_depth(text)
        loader = _JsonLoader(text)
        while loader.check_node():
            node = loader.get_node()
            _check(node, {}, set())
            value = loader.construct_document(node)
            if value is not None:
                found.append((value, node))
    except yaml.YAMLError as error:
        raise describe(error, text) from None
    finally:
        if loader is not None:
            loader.dispose()
    return found


def _check_depth(text: str) -> None:
    """The composer is recursive and written in C: a file of brackets would end the process without a message."""
    depth = 0
    for event in yaml.parse(text, Loader=Base):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_LEVELS:
            problem = f"has more than {MOST_LEVELS} levels"
            raise YamlProblem(problem, "check the brackets and the indentation", event.start_mark)


def _check(node: yaml.Node, sizes: dict[int, int], open_nodes: set[int]) -> int:
    """The number of nodes with aliases expanded; raises YamlProblem for a cycle, too many nodes or a foreign tag."""
    if id(node) in sizes:
        return sizes[id(node)]
    if id(node) in open_nodes:
        raise YamlProblem("an alias refers to what contains it", "write the value out", node.start_mark)
    if node.tag not in JSON_TAGS:
        tag = node.tag.replace(TAG, "!!")
        raise YamlProblem(f"the tag {tag} has no meaning here", "remove it", node.start_mark)
    if isinstance(node, yaml.MappingNode):
        _check_keys(node)
    open_nodes.add(id(node))
    size = 1 + sum(_check(child, sizes, open_nodes) for child in _children(node))
    open_nodes.remove(id(node))
    if size > MOST_NODES:
        raise YamlProblem(f"has more than {MOST_NODES} values", "split the file", node.start_mark)
    sizes[id(node)] = size
    return size


def _check_keys(node: yaml.MappingNode) -> None:
    """Makes every key a string, as the API server does; raises YamlProblem for one that occurs twice or is none."""
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == MERGE:
            continue
        if not isinstance(key, yaml.ScalarNode) or key.tag == f"{TAG}null":
            raise YamlProblem("a key must be a single word", "write `key: value`", key.start_mark)
        if key.value in seen:
            raise YamlProblem(f"duplicate key `{key.value}`", "remove one of them", key.start_mark)
        seen.add(key.value)
        key.tag = f"{TAG}str"


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
