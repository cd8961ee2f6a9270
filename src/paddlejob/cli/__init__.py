"""The command `pdj`: one file per verb. Heavy imports stay inside the verbs; errors are caught once, in main."""
