"""Reading data from local files and from any URL that fsspec supports.

What belongs here: choosing the driver for a URL, finding and reading source files, our own drivers and fixes to
fsspec's, translating driver errors, and unpacking compressed sources. Nothing here writes to a destination.
"""
