"""Policies from the first pod of an attempt to the moment when all of them start."""
