"""Verbs for jobs that exist: looking at them, changing them, removing them."""
