"""Which kinds of object a server has, and where they live."""

from __future__ import annotations

from paddlejob.errors import NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import Object, Resource


class Discovery:
    """Asks the server about each API version once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, dict[str, Resource]] = {}

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """None where the server does not have it."""
        if api_version not in self._known:
            self._known[api_version] = await self._ask(api_version)
        return self._known[api_version].get(kind)

    async def _ask(self, api_version: str) -> dict[str, Resource]:
        try:
            answer = await self._client.read(f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}")
        except NotFound:
            return {}
        group, _, version = api_version.rpartition("/")
        listed: list[Object] = answer.get("resources") or []
        return {
            one["kind"]: Resource(group, version, one["name"], one["namespaced"], one["kind"])
            for one in listed
            if "/" not in one["name"]
        }
