"""Logs as the page reads them: the end of a log, what is added to it, and lines that match."""
