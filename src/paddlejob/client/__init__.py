"""What the verbs and the Python API share: jobs as values, targets, submitting, describing, handles of running jobs.

It knows no command line. `paddlejob` itself exports the Python API.
"""
