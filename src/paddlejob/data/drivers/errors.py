"""Translates the errors of drivers, which come from many libraries, into errors of paddlejob."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paddlejob.data.drivers.urls import redact
from paddlejob.errors import BadInput, NotPossible, PaddleJobError


def describe(error: BaseException) -> str:
    """Return the message of an error without credentials, or its class name if it has none."""
    return redact(getattr(error, "strerror", None) or str(error) or type(error).__name__)


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn driver errors into ours, except for those that callers handle themselves.

    Drivers raise errors of their own libraries (aiohttp, botocore, requests), and not all of them are OSErrors.
    """
    try:
        yield
    except (PaddleJobError, FileNotFoundError, PermissionError):
        raise
    except NotImplementedError as error:
        raise BadInput(f"{url} is read-only; choose another destination") from error
    except Exception as error:
        raise NotPossible(f"{url}: {describe(error)}; run the same command again to resume") from error


@contextmanager
def translate_read_errors(url: str) -> Iterator[None]:
    """Turn every error while a source is read into one of ours."""
    try:
        yield
    except (PaddleJobError, GeneratorExit):
        raise
    except PermissionError as error:
        raise BadInput(f"{url}: permission denied; check its permissions or your credentials") from error
    except Exception as error:
        raise NotPossible(
            f"{url}: could not be read: {describe(error)}; run the same command again to resume"
        ) from error
