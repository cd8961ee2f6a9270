"""`pdj web`: a server on this machine that shows jobs in a browser, with the rights of the user who starts it."""
