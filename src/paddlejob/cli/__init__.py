"""The `pdj` command: verbs/ declares the commands, the other packages do their work, main catches every error once."""
