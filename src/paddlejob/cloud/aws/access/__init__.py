"""What a user needs to work with a cluster: kubeconfig, API tokens, the shared volume and the IAM policy."""
