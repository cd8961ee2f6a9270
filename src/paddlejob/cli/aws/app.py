"""The command group `pdj aws`."""

from __future__ import annotations

import typer

from paddlejob.cli.aws.access import kubeconfig, policy, storage, token
from paddlejob.cli.aws.assets import init, render, validate
from paddlejob.cli.aws.destroy import destroy
from paddlejob.cli.aws.lifecycle import scale, status, up, upgrade

app = typer.Typer(
    help="Create and manage a Kubernetes cluster on AWS.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
for verb in (init, render, validate, up, status, scale, upgrade, kubeconfig, token, storage, policy, destroy):
    app.command()(verb)
