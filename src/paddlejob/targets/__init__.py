"""The machine or cluster that a command, a program or a page talks to, behind one `Target` protocol."""
