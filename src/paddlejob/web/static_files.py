"""The page and its files, read and compressed once. They hold no secret, so everyone may have them."""

from __future__ import annotations

import gzip
from pathlib import Path

from aiohttp import web

STATIC = Path(__file__).with_name("static")
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticFiles:
    def __init__(self, folder: Path = STATIC) -> None:
        self._files = {
            path.name: (TYPES[path.suffix], path.read_bytes()) for path in folder.iterdir() if path.suffix in TYPES
        }
        self._compressed = {name: gzip.compress(content) for name, (_, content) in self._files.items()}

    async def serve(self, request: web.Request) -> web.Response:
        """Only files that were there when the server started have a name."""
        name = request.match_info["file"]
        if name not in self._files or name.endswith(".html"):
            raise web.HTTPNotFound
        return self._response(name, compressed="gzip" in request.headers.get("Accept-Encoding", ""))

    async def page(self, request: web.Request) -> web.Response:
        return self._response("index.html")

    def _response(self, name: str, compressed: bool = False) -> web.Response:
        content_type, content = self._files[name]
        headers = {"Content-Type": content_type}
        if compressed:
            headers["Content-Encoding"], content = "gzip", self._compressed[name]
        return web.Response(body=content, headers=headers)
