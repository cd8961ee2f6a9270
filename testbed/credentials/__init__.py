"""The cluster's certificate authority, and kubeconfig files for its clients."""
