"""A file that is being written through a driver, whose errors come out as ours."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any, Self

from paddlejob.data.drivers import reached
from paddlejob.errors import PaddleJobError


class Upload:
    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url = file, url

    def write(self, data: bytes) -> int:
        with reached(self._url):
            return int(self._file.write(data))

    def commit(self) -> None:
        with reached(self._url):
            self._file.commit()

    def discard(self) -> None:
        with reached(self._url):
            self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After a failure what is here is thrown away; that it cannot be closed either must not hide the failure.
        with suppress(PaddleJobError, OSError) if kind else nullcontext(), reached(self._url):
            self._file.close()
