"""Beginning again: a whole attempt (rebuild) or single pods (replace), and how long either waits."""
