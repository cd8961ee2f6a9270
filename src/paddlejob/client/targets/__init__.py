"""The machine or cluster that a command talks to, behind one `Target` protocol."""
