"""Opening the channel: its authority, its certificate, what pods get of both, and the server.

Nothing here may keep the operator from its jobs, not even a package for certificates that cannot be loaded.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from paddlejob.engine.backend import Key
from paddlejob.errors import BadInput, PaddleJobError
from paddlejob.kube.client import Client
from paddlejob.operator.agents.agents import Agents
from paddlejob.operator.agents.identity import Identity
from paddlejob.operator.agents.server import AgentServer
from paddlejob.plan.world import AgentChannel

if TYPE_CHECKING:
    from paddlejob.operator.agents.authority import Authority

NO_CHANNEL = "agents: no channel, so jobs restart with new pods"
log = logging.getLogger(__name__)


class AgentGate:
    def __init__(self, agents: Agents, host: str = "", authority: Authority | None = None) -> None:
        self.agents = agents
        self._host = host
        self._authority = authority

    @classmethod
    async def opened(cls, client: Client, url: str, namespace: str) -> AgentGate:
        """Without a URL, or without the Secret, there is no channel, and jobs restart with new pods."""
        if not url:
            return cls(Agents())
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise BadInput(f"--agent-url {url}: use an HTTPS address, for example https://HOST:8443")
        try:
            from paddlejob.operator.agents.authority import stored_authority

            authority = await stored_authority(client, namespace)
        except PaddleJobError as error:
            log.error("%s: %s", NO_CHANNEL, error)
            return cls(Agents())
        except Exception:
            log.exception(NO_CHANNEL)
            return cls(Agents())
        channel = AgentChannel(url, authority.certificate.decode(), agent_files(), client.server_time())
        return cls(Agents(channel), parts.hostname, authority)

    async def run(
        self, address: str, identity: Identity, enqueue: Callable[[Key], None], is_leader: Callable[[], bool]
    ) -> None:
        """Serve until cancelled, or until that fails. Jobs need the operator, and can do without the channel."""
        try:
            await self._serve(address, AgentServer(self.agents, identity, enqueue, is_leader))
        except PaddleJobError as error:
            self.agents.channel = None
            log.error("%s: %s", NO_CHANNEL, error)
        except Exception:
            self.agents.channel = None
            log.exception(NO_CHANNEL)

    async def _serve(self, address: str, server: AgentServer) -> None:
        """With a new certificate from time to time."""
        from paddlejob.operator.agents.authority import RENEW_AFTER, load_serving_certificate

        assert self._authority is not None
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        load_serving_certificate(tls, self._authority, self._host)
        async with server.serving(address, tls) as port:
            log.info("agents: serving on port %d", port)
            while True:
                await asyncio.sleep(RENEW_AFTER.total_seconds())
                load_serving_certificate(tls, self._authority, self._host)


def agent_files() -> dict[str, str]:
    """The program of the agent, by path."""
    return dict(_python_files(resources.files("paddlejob.agent"), ""))


def _python_files(directory: Traversable, prefix: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for one in sorted(directory.iterdir(), key=lambda one: one.name):
        if one.is_dir() and not one.name.startswith("_"):
            found += _python_files(one, f"{prefix}{one.name}/")
        elif one.name.endswith(".py") and one.name != "__init__.py":
            found.append((f"{prefix}{one.name}", one.read_text(encoding="utf-8")))
    return found
