"""The jobs of this machine, read from the files of the embedded engine."""
