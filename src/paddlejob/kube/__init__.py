"""A small asynchronous Kubernetes client: credentials, requests, watch, cache, lease and events.

What belongs here would be useful to any controller. Nothing in this room knows what a PaddleJob is.
Objects are plain dicts, as the API server writes them.
"""
