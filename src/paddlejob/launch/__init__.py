"""What runs inside a pod of a plain Kubernetes Job: the pods find each other, and each starts a server and a trainer.

What belongs here: reading the job's environment, finding the other pods, copying a part of the data, and the
processes. Only the standard library, in the words of Python 3.8, and nothing else of paddlejob: these files are also
put together into the one file `start_paddle.py` (see single_file.py), which runs in images that have no paddlejob.
"""
