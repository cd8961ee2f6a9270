"""Writing to a destination so that readers see each part or file complete, or not at all.

What belongs here: the store protocol, its implementations for local directories and remote file systems, and the lock
that keeps two runs apart.
"""
