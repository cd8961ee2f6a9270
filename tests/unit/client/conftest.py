from tests.support.scripted_server import client, server, target

__all__ = ["client", "server", "target"]
