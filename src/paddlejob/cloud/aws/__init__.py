"""A Kubernetes cluster on AWS: EKS, its network, its nodes and a file system that all nodes share.

config     cluster.yaml, which the user edits, and the other files of the assets directory
templates  the CloudFormation templates that cluster.yaml becomes, and a configuration of eksctl
stack      the two stacks, cluster and data: create, update, delete, status; and the data on a cluster of others
access     what a user needs to work with the cluster: kubeconfig, tokens, volumes, the IAM policy

CloudFormation does the work; this package starts it, follows it and reports failures. The assets directory and the
stacks are the only state, so every command can be run again.

Only `session` creates boto3 clients, and only `errors` knows botocore's exceptions. boto3 is imported inside functions
because it is heavy and optional.
"""
