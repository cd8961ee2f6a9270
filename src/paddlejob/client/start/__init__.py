"""From what a user names to a job that runs: load it, check it, place it on this machine or a cluster, start it."""
