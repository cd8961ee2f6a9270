from tests.support.serving import client, serve, server, target

__all__ = ["client", "serve", "server", "target"]
