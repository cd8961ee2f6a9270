"""`python -m paddlejob` is `pdj`."""

from paddlejob.cli.main import main

if __name__ == "__main__":
    main()
