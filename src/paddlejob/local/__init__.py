"""Jobs on this machine: a pod is a process tree with its own address, environment, files and log.

`LocalEngine` runs jobs through the same planner as a cluster does; `Store` is what other commands see of them.
What belongs here: making pods exist and reporting what they do. What does not: deciding anything about a job.
The modules that run inside the nursery (kernel, mounts, init, nursery) use the standard library alone.
"""
