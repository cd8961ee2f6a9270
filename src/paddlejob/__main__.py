"""`pdj`, which is also `python -m paddlejob`. Imports take a tenth of a second, in which Ctrl-C may come."""

import sys


def main() -> None:
    try:
        from paddlejob.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
