"""API objects of a PaddleJob, read into the types that plans are made from.

This package knows the API's conventions (owners, labels, container statuses) but sends no requests. The operator's
informers and the command line read the same objects through it, so both see the same pod in the same phase.
"""
