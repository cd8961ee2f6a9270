"""The objects that a job is made of: manifests of pods, Services, ConfigMaps and pod groups.

What belongs here: functions from a job to a manifest. What does not: when an object is created or deleted.
"""
