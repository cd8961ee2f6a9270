"""`pdj run`: prepare jobs for the local machine, watch them, show their progress, handle signals."""
