"""YAML text as Kubernetes objects, which know the lines of their fields. Errors name the file, line and column."""

from __future__ import annotations

import shlex
from typing import Any

import yaml

from paddlejob.api.fault import Path
from paddlejob.api.yaml_loader import load
from paddlejob.api.yaml_problem import YamlProblem, full_width_in, numbered, show
from paddlejob.errors import BadFile, sentence

STDIN = "standard input"
BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Document(dict[str, Any]):
    """An object that was read from a file and knows the line of each of its fields."""

    def __init__(self, value: dict[str, Any], node: yaml.Node) -> None:
        super().__init__(value)
        self._node = node

    def line(self, path: Path) -> int:
        """The line of a field; for a field that is missing, the line of what should contain it."""
        node, line = self._node, int(self._node.start_mark.line) + 1
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            mark, node = found
            line = int(mark.line) + 1
        return line


def documents(text: str, source: str) -> list[Document]:
    """The objects of a file, with those of a List, without empty documents."""
    try:
        loaded = load(text)
    except YamlProblem as error:
        raise BadFile(source, str(error), error.line, error.column) from None
    found: list[Document] = []
    for value, node in loaded:
        found += _objects(_object(value, node, source, text), source, text)
    if not found:
        raise BadFile(source, "is empty; it should contain a PaddleJob (`pdj init` writes one)")
    return found


def decode(content: bytes, source: str) -> str:
    """The text of a file; raises BadFile with the command that converts it if it is not UTF-8."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadFile(source, _encoding_problem(content, source), line) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise BadFile(source, "contains zero bytes, so it is not a text file; save it as UTF-8", line)
    return text


def _encoding_problem(content: bytes, source: str) -> str:
    if content.startswith(BYTE_ORDER_MARKS):
        return f"is encoded in UTF-16, not UTF-8; {_conversion('UTF-16', source)}"
    try:
        content.decode("gb18030")
    except UnicodeDecodeError:
        return "is not a text file: it is not encoded in UTF-8; save it as UTF-8"
    if b"\0" in content:
        return "is not a text file: it is not encoded in UTF-8; save it as UTF-8"
    return f"is encoded in GBK, not UTF-8; {_conversion('GB18030', source)}"


def _conversion(encoding: str, source: str) -> str:
    command = f"iconv -f {encoding} -t UTF-8" + ("" if source == STDIN else f" {shlex.quote(source)} > utf8.yaml")
    return f"save it as UTF-8, or convert it with `{command}`"


def _object(value: Any, node: yaml.Node, source: str, text: str) -> Document:
    """One document as an object whose kind and metadata can be used; raises BadFile."""
    line = int(node.start_mark.line) + 1
    if not isinstance(value, dict):
        if cause := full_width_in(numbered(text)):
            raise BadFile(source, str(cause), cause.line, cause.column)
        raise BadFile(source, f"a Kubernetes object is a mapping, not {_type_name(value)}: {show(value)}", line)
    document = Document(value, node)
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field, ""), str):
            raise BadFile(source, f"{field}: {show(document[field])} is not a string", document.line((field,)))
    if "metadata" in document and not isinstance(document["metadata"], dict):
        written = document["metadata"]
        problem = "is empty; indent its fields" if written is None else f"{show(written)} is not a mapping of fields"
        raise BadFile(source, f"{sentence('metadata', problem)}, such as `name: NAME`", document.line(("metadata",)))
    return document


def _objects(document: Document, source: str, text: str) -> list[Document]:
    """The object itself, or those of a List."""
    if document.get("kind") != "List":
        return [document]
    items = document.get("items") or []
    found = _child(document._node, "items")
    if not isinstance(items, list) or not found:
        raise BadFile(source, "items is not a list; start each object with `- `", document.line(("items",)))
    nodes = found[1].value
    return [_object(item, node, source, text) for item, node in zip(items, nodes, strict=True)]


def _child(node: yaml.Node, step: str | int) -> tuple[Any, yaml.Node] | None:
    """The position of a field and its value; None if the node has no such field."""
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None


def _type_name(value: object) -> str:
    names = {list: "a list", str: "text", bool: "true or false"}
    return names.get(type(value), "a number")
