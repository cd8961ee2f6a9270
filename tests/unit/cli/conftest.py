from tests.support.cluster_verbs import api, called
from tests.support.serving import client, serve, server

__all__ = ["api", "called", "client", "serve", "server"]
