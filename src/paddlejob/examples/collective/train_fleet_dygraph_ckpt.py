"""The ResNet of train_fleet.py with checkpoints in /checkpoint, under the name that paddle-operator's sample starts.

It continues from the newest checkpoint there, with as many workers as it is started with. OUTPUT_DIR selects another
directory.
"""

from __future__ import annotations

from pathlib import Path

import train_fleet

if __name__ == "__main__":
    train_fleet.main(output_dir=Path("/checkpoint"))
