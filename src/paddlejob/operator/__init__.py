"""The Backend over Kubernetes, and the process that runs it in a cluster.

What belongs here: how a plan's actions become API requests, and how API objects become a World. Decisions are made
in plan/, requests are sent by kube/.
"""
