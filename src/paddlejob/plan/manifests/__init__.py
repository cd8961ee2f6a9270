"""Manifests of the objects a job gets: pods, Services, ConfigMaps and pod groups.

What belongs here: functions from a job to a manifest. What does not: when an object is created or deleted.
"""
