"""The commands with their options and help texts; heavy imports stay inside the functions."""
