"""Jobs on this machine: a pod is a process tree with its own address, environment, files and log.

`LocalEngine` runs jobs through the planner that also serves a cluster; `JobStore` is what other commands see of them.
The work is divided as in Kubernetes: the backend stores objects, the scheduler binds pods, the kubelet runs them.
What belongs here: making pods exist and reporting their state. What does not: deciding anything about a job.
"""
