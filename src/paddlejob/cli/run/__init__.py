"""`pdj run`: preparing jobs for this machine, watching them, showing their progress, handling signals."""
