"""A node that runs real containers: its namespaces, its cgroups, its configuration and its process 1."""
