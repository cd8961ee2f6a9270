"""The supervisor that starts and reaps containers, and what runs in a container before its command.

The supervisor must stay small, single-threaded and quick to start, so these modules use the standard library alone.
"""
