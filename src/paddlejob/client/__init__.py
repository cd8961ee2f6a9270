"""The Python API: jobs as values, and handles of jobs that run on this machine or on a cluster."""

from paddlejob.client.handle import Run
from paddlejob.client.jobs import Job, collective, load, parameter_server
from paddlejob.client.start import attach, run, submit

__all__ = ["Job", "Run", "attach", "collective", "load", "parameter_server", "run", "submit"]
