"""The jobs that a user names: in files, or made from a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from paddlejob.api.program import Program
from paddlejob.client.files import is_paddle_job

Object = dict[str, Any]


@dataclass(frozen=True)
class Given:
    """Names of files or programs. `load` returns the objects of one of them."""

    names: list[str]
    load: Callable[[str], list[Object]]
    program: Program | None = None

    def in_namespace(self, default: str) -> Given:
        """The same, with a namespace for jobs that set none."""

        def load(name: str) -> list[Object]:
            return [_in_namespace(one, default) if is_paddle_job(one) else one for one in self.load(name)]

        return replace(self, load=load) if default else self


def _in_namespace(document: Object, default: str) -> Object:
    metadata = document.get("metadata")
    if isinstance(metadata, dict):
        metadata.setdefault("namespace", default)
    return document
