from tests.support.cluster_verbs import api, called, client, server

__all__ = ["api", "called", "client", "server"]
