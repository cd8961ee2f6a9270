from tests.support.cluster_verbs import api, called
from tests.support.scripted_server import client, server

__all__ = ["api", "called", "client", "server"]
