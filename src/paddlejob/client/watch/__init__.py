"""What can be seen of a job while it runs: its last lines, its loss so far, what its replicas use."""
