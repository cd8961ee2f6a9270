"""`pdj crd`: the CustomResourceDefinition."""

from __future__ import annotations


def command() -> None:
    """Print the CustomResourceDefinition of PaddleJob.

    Example: pdj crd | kubectl create -f -
    """
    import sys

    from paddlejob.api.crd import crd
    from paddlejob.cli.yaml_text import to_yaml

    sys.stdout.write(to_yaml(crd()))
