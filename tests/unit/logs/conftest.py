from tests.support.serving import api, client, serve, server

__all__ = ["api", "client", "serve", "server"]
