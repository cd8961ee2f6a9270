"""Policies for workers that come and go within an attempt, while the others train."""
