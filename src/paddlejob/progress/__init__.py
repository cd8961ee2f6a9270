"""How far training is, read from lines of a log. Pure: one parser for both engines and for the command line."""

from paddlejob.progress.parser import Parser
from paddlejob.progress.sample import Sample

__all__ = ["Parser", "Sample"]
