"""A small asynchronous Kubernetes client: credentials, requests, watches, informers, leader election and events.

Any controller could use this package; nothing in it knows what a PaddleJob is. The parts have the names that client-go
gives them. Objects are plain dicts, as the API server returns them.
"""
