"""The checks of `pdj doctor`: this machine, a cluster, and leftovers of other software."""
