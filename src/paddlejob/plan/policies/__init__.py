"""What may happen to a job next, one policy per file; planner.py lists them in the order in which they are asked.

A policy takes a Snapshot and returns a Plan, or None if it does not apply. What belongs here: decisions. What does
not: manifests (plan/manifests), and steps that several policies share (plan/finish.py, plan/restarts).
"""
