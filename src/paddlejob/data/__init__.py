"""Splitting training data into parts, and bringing a part to where it is read.

What belongs here: finding source files (anything fsspec can read), cutting them into even parts, copying with
checksums so that no half part is ever seen, and going on after a kill. Only the standard library, fsspec (late, as it
takes long to import), what two of its drivers are built on, and paddlejob.errors are imported; nothing here knows of
jobs, pods or terminals.
"""

from paddlejob.data.manifest import File, Manifest, Part
from paddlejob.data.split import By, split
from paddlejob.data.stage import Staged, stage

__all__ = ["By", "File", "Manifest", "Part", "Staged", "split", "stage"]
