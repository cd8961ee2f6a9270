"""Discovery: which kinds the API server serves, and under which resource."""

from __future__ import annotations

from paddlejob.errors import NotFound
from paddlejob.kube.client import Client
from paddlejob.kube.resource import Object, Resource


class Discovery:
    """Reads the resources of each API version once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, dict[str, Resource]] = {}

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """Returns None if the server does not serve the kind."""
        if api_version not in self._known:
            self._known[api_version] = await self._resources(api_version)
        return self._known[api_version].get(kind)

    async def _resources(self, api_version: str) -> dict[str, Resource]:
        try:
            found = await self._client.read(f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}")
        except NotFound:
            return {}
        group, _, version = api_version.rpartition("/")
        listed: list[Object] = found.get("resources") or []
        return {
            one["kind"]: Resource(group, version, one["name"], one["namespaced"], one["kind"])
            for one in listed
            if "/" not in one["name"]
        }
