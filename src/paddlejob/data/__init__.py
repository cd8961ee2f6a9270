"""Splits training data into parts, and stages data where a trainer reads it.

What belongs here: the two operations, `split` and `stage`; the records they leave at the destination; checks before
anything is written; resuming an interrupted run. `drivers` finds and reads source files, `partition` decides what each
part contains, and `stores` writes to the destination. The package imports only the standard library,
paddlejob.errors, fsspec (late, because importing it is slow) and the libraries that two of its drivers build on. It
knows nothing about jobs, pods or terminals.
"""

from paddlejob.data.manifest import By, File, Manifest, Part, Staged
from paddlejob.data.split import split
from paddlejob.data.stage import stage

__all__ = ["By", "File", "Manifest", "Part", "Staged", "split", "stage"]
