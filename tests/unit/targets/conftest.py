from tests.support.serving import api, client, serve, server, target

__all__ = ["api", "client", "serve", "server", "target"]
