"""PaddleJob v1 as data: types, validation rules and the CRD built from both. Pure: no I/O, no clock, no randomness.

What belongs here: anything that can be known about a job without looking at a cluster or a process.
"""
