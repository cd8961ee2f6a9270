"""PaddleJob v1 as data: its types, the rules it keeps, the CRD made from both. Pure: no I/O, no clock, no randomness.

What belongs here: anything that can be said about a job without looking at a cluster or a process.
"""
