"""What is known of the jobs on this machine, as files: the store, records of pods, events, logs, leftovers."""
