"""The Backend over Kubernetes, the process that runs it in a cluster, and the manifests that install it.

This package turns a plan's actions into API requests, and cached API objects into a World. Decisions are made in
plan/, objects are read by objects/, requests are sent by kube/.
"""
