"""`kubectl pdj`: the same program under the name by which kubectl finds it."""

from __future__ import annotations

import sys
from pathlib import Path


def is_plugin() -> bool:
    """Whether kubectl started us. Then jobs are on its cluster unless said otherwise."""
    return Path(sys.argv[0]).name in ("kubectl-pdj", "kubectl-pdj.exe")
