"""What runs beside a program inside its pod: the agent that restarts it in place, and the hook that shows its stacks.

What belongs here: files that are shipped alone into pods. Only the standard library and the syntax of Python 3.8, and
no other part of paddlejob.
"""
