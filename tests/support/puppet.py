"""A program that a story controls: it writes its environment to a file, then waits for another file to end.

Run as: python puppet.py DIRECTORY, in a pod whose environment has STORY_POD and STORY_UID.
"""

import json
import os
import sys
import time
from pathlib import Path

strings = Path(sys.argv[1])
me = f"{os.environ['STORY_POD']}.{os.environ['STORY_UID']}"
seen = strings / f"{me}.json"
(strings / f".{me}").write_text(json.dumps(dict(os.environ)))
(strings / f".{me}").rename(seen)
order = strings / f"{me}.end"
while not order.exists():
    time.sleep(0.05)
ending = json.loads(order.read_text())
print(ending["message"], flush=True)
sys.exit(ending["code"])
