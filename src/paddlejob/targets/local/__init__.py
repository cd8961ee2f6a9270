"""Jobs on this machine, by their files and processes."""
