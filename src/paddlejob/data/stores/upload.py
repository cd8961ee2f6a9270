"""A file that is written through a driver, whose errors are translated into ours."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any, Self

from paddlejob.data.drivers.errors import translate_errors
from paddlejob.errors import PaddleJobError


class Upload:
    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url = file, url

    def write(self, data: bytes) -> int:
        with translate_errors(self._url):
            return int(self._file.write(data))

    def commit(self) -> None:
        with translate_errors(self._url):
            self._file.commit()

    def discard(self) -> None:
        with translate_errors(self._url):
            self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After a failure the file is discarded; a second failure to close it must not hide the first.
        with suppress(PaddleJobError, OSError) if kind else nullcontext(), translate_errors(self._url):
            self._file.close()
