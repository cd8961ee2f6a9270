"""Files that are written through a driver: every error is one of ours, and the first one is reported."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.data.stores.upload import Upload
from paddlejob.errors import BadInput, NotPossible


class File:
    """A file of a driver that fails where a test says."""

    def __init__(self, **failures: Exception) -> None:
        self._failures = failures
        self.done: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def act(*data: bytes) -> int:
            self.done.append(name)
            if name in self._failures:
                raise self._failures[name]
            return sum(map(len, data))

        return act


def test_what_is_written_is_closed():
    file = File()
    with Upload(file, "s3://b") as upload:
        assert upload.write(b"abc") == 3
    assert file.done == ["write", "close"]


def test_a_failure_to_close_is_reported():
    with (
        pytest.raises(NotPossible, match="s3://b: full; run the same command again"),
        Upload(File(close=OSError("full")), "s3://b"),
    ):
        pass


@pytest.mark.parametrize("second", [OSError("second"), RuntimeError("second"), PermissionError("second")])
def test_a_second_failure_does_not_hide_the_first(second: Exception):
    file = File(close=second)
    with pytest.raises(ZeroDivisionError, match="first"), Upload(file, "s3://b"):
        raise ZeroDivisionError("first")
    assert file.done == ["close"]


@pytest.mark.parametrize("step", ["write", "commit", "discard"])
def test_each_step_of_a_driver_fails_with_one_of_our_errors(step: str):
    for failure, ours in ((RuntimeError("gone"), NotPossible), (NotImplementedError(), BadInput)):
        upload = Upload(File(**{step: failure}), "s3://b")
        with pytest.raises(ours, match="s3://b"):
            upload.write(b"x") if step == "write" else getattr(upload, step)()
