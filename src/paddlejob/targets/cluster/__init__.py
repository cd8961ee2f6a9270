"""Jobs on a cluster, read with the rights of a kubeconfig."""
