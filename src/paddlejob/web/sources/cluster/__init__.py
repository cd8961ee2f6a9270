"""The jobs of a cluster, read with the rights of the user's kubeconfig."""
