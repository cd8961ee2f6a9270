"""Deciding what each part of a split contains.

What belongs here: counting records, computing where to cut, shuffling lines, and the layouts that produce the files
of a part. Nothing here writes to a destination.
"""
