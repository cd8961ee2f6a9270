"""A program that does what a story says: it writes down what it sees, then waits for the word to end.

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
word = strings / f"{me}.end"
while not word.exists():
    time.sleep(0.05)
ending = json.loads(word.read_text())
print(ending["message"], flush=True)
sys.exit(ending["code"])
