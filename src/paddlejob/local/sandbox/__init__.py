"""Inside the sandbox: the supervisor that starts and reaps containers, and what runs before a container's command.

The supervisor must stay small, single-threaded and quick to start, so these modules use the standard library alone.
"""
