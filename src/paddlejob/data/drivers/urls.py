"""URLs and file names as text: removing credentials, and what identifies a source."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import parse_qsl, urlsplit

# The second form: a password with "/", "?" or "#" in it, where urlsplit would see the end of the host; not a port.
_USER = re.compile(r"(?<=://)(?:[^\s/?#]*|[^\s/?#@:]*:(?!\d+(?:[/?#]|$))(?:(?!://)[^\s@])*)@")
_WEB_QUERY = re.compile(r"(https?://[^\s?#'\"<>]*)[?#][^\s'\"<>]*")
_QUERY = re.compile(r"[?#][\w.~%-]+=[^\s'\"<>]*")
_AZURE_SIGNATURE = {"se", "ske", "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "st", "sv"}
_VOLATILE = _AZURE_SIGNATURE | {
    "access_key", "api_key", "apikey", "auth", "authorization", "awsaccesskeyid", "credential", "delegation", "expires",
    "googleaccessid", "key", "key-pair-id", "passwd", "password", "policy", "pwd", "secret", "session", "sessionid",
    "sig", "signature", "token",
}  # fmt: skip
"""Query parameters that carry credentials or belong to a signature."""
_VOLATILE_PREFIXES = ("x-amz-", "x-goog-", "x-oss-", "x-cos-")


def redact(text: str) -> str:
    """Return a URL, or a message with URLs in it, without users, passwords and queries.

    The whole query goes, because any parameter may be a credential.
    """
    if "://" not in text and " " not in text:
        return text  # a local path, which may contain "?" and "@"
    return _QUERY.sub("", _WEB_QUERY.sub(r"\1", _USER.sub("", text)))


def identifying_query(url: str) -> list[tuple[str, str]]:
    """Return the query parameters that select the content, without those that change with each signature or login."""
    if not url.startswith(("http://", "https://")):
        return []
    return [(name, value) for name, value in parse_qsl(urlsplit(url).query, True) if not _is_volatile(name.lower())]


def _is_volatile(name: str) -> bool:
    return name in _VOLATILE or name.startswith(_VOLATILE_PREFIXES) or name.endswith("token")


def is_below(name: str) -> bool:
    """Whether a name, appended to a directory, refers to something inside it."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts
