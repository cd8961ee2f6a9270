"""`python -m testbed build [NAME ...] | up [--nodes N] [--volcano] | shell | down`."""

from __future__ import annotations

import argparse
import sys

from paddlejob.errors import PaddleJobError
from testbed import commands
from testbed.build import recipes


def main() -> int:
    try:
        _run(_parser().parse_args())
    except PaddleJobError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m testbed", description="Run a real Kubernetes for the tests.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    build = verbs.add_parser("build", help="build binaries into the cache and print their paths")
    build.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(recipes.names())}; default: all")
    up = verbs.add_parser("up", help="start a cluster and a shell with kubectl; leaving the shell stops the cluster")
    up.add_argument("--nodes", type=int, default=3, help="number of nodes (default: 3)")
    up.add_argument("--volcano", action="store_true", help="install Volcano, the gang scheduler")
    verbs.add_parser("shell", help="open another shell for the running cluster")
    verbs.add_parser("down", help="stop the running clusters")
    return parser


def _run(chosen: argparse.Namespace) -> None:
    match chosen.verb:
        case "build":
            commands.build(chosen.names)
        case "up":
            commands.up(chosen.nodes, chosen.volcano)
        case "shell":
            commands.shell()
        case "down":
            commands.down()


if __name__ == "__main__":
    sys.exit(main())
