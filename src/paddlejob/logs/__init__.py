"""Logs of training: lines as values, files and pods to read them from, and the metrics that are found in them."""
