"""The launcher that runs in each pod of a plain Kubernetes Job: it finds the peers and starts a server and a trainer.

What belongs here: reading the job's environment, discovering the other pods, copying this pod's part of the data, and
supervising the processes. Only the standard library and the syntax of Python 3.8, and no other part of paddlejob:
single_file.py joins these modules into `start_paddle.py`, which runs in images without paddlejob.
"""
