"""Check, build and serve the documentation.

python -m tools.docs check          every page has its Chinese twin, links lead somewhere, blocks are tested
python -m tools.docs build          write the site to dist/docs
python -m tools.docs serve [PORT]   build it and serve it on this machine
python -m tools.docs translated PAGE ...   record that the Chinese twins of these pages are up to date
"""

from __future__ import annotations

import sys

from tools.docs import checks, site, stage
from tools.docs.pages import file_of


def main(arguments: list[str]) -> int:
    match arguments:
        case ["check"]:
            return checks.main()
        case ["build"]:
            return site.build()
        case ["serve", *port]:
            return site.serve(int(port[0]) if port else 8000)
        case ["translated", *pages]:
            for page in pages:
                _translated(page.removeprefix("docs/"))
            return 0
    print(__doc__)
    return 2


def _translated(page: str) -> None:
    file = file_of(page, "zh")
    text = stage.TRANSLATED.sub("", file.read_text()).rstrip()
    file.write_text(f"{text}\n\n<!-- translated from {stage.digest(page)} -->\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
