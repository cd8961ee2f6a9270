"""`python -m testbed build [NAME ...]`."""

from __future__ import annotations

import argparse
import sys

from paddlejob.errors import PaddleJobError
from testbed import recipes
from testbed.build import binaries


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed", description="a real Kubernetes for the tests")
    verbs = parser.add_subparsers(dest="verb", required=True)
    build = verbs.add_parser("build", help="build binaries into the cache, and print where they are")
    build.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(recipes.names())}; default all")
    chosen = parser.parse_args()
    try:
        return _build(chosen.names)
    except PaddleJobError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _build(names: list[str]) -> int:
    unknown = set(names) - set(recipes.names())
    if unknown:
        print(f"no recipe for {', '.join(sorted(unknown))}; there are {', '.join(recipes.names())}", file=sys.stderr)
        return 2
    for path in binaries(*(names or recipes.names())).values():
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
