"""`python -m paddlejob.launch`."""

import sys

from paddlejob.launch.main import main

if __name__ == "__main__":
    sys.exit(main())
