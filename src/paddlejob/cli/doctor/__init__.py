"""The checks behind `pdj doctor`: the local machine, the cluster, and leftovers of other software."""
