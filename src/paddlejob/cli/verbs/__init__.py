"""One file per verb of `pdj`: its options, and the few lines that call the package that does the work."""
