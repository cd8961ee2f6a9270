"""A Kubernetes cluster on AWS: EKS, its network, its nodes and a file system that all of them share.

What the user edits is cluster.yaml in a directory of assets (`assets`, `config`). It becomes one
CloudFormation stack (`render`, template.yaml), and CloudFormation does the work; this package starts it,
follows it and says what went wrong (`stack`, `events`, `up`, `destroy`). Nothing is remembered between
two commands but that directory and the stack, so every command can be run again.

Only `session` makes boto3 clients and only `refusals` knows botocore's exceptions. boto3 is imported
inside functions, as it is heavy and optional.
"""
