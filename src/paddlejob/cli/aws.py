"""`pdj aws`: a cluster on AWS, from a directory of assets. The work is done in paddlejob.cloud.aws."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlejob.errors import BadInput, NotPossible

if TYPE_CHECKING:
    from paddlejob.cloud.aws.assets import Assets
    from paddlejob.cloud.aws.config import ClusterConfig
    from paddlejob.cloud.aws.session import Aws
    from paddlejob.cloud.aws.stack import Stack

app = typer.Typer(help="A cluster on AWS.", no_args_is_help=True, add_completion=False, rich_markup_mode=None)


class Output(StrEnum):
    text = "text"
    json = "json"
    yaml = "yaml"


class Rendered(StrEnum):
    stack = "stack"
    credentials = "credentials"


AssetsDir = Annotated[Path, typer.Option("--assets", help="The directory with cluster.yaml.")]
Profile = Annotated[str | None, typer.Option(help="A profile of the AWS configuration.", envvar="AWS_PROFILE")]
HERE = Path()


@app.command()
def init(
    cluster_name: Annotated[str, typer.Option(help='Letters, digits and "-".')],
    region: Annotated[str, typer.Option(help="Such as us-west-2.")],
    availability_zone: Annotated[list[str], typer.Option(help="A zone for nodes; repeat it for more.")],
    external_dns_name: Annotated[str, typer.Option(help="A name for the private DNS zone.")] = "paddle",
    key_name: Annotated[str, typer.Option(help="An EC2 key pair, for ssh.")] = "",
    kms_key_arn: Annotated[str, typer.Option(help="An existing KMS key; else one is made.")] = "",
    workers: Annotated[int, typer.Option(help="How many nodes.")] = 1,
    instance_type: Annotated[str, typer.Option(help="Their type; for GPUs, such as g4dn.xlarge.")] = "m5.xlarge",
    spot: Annotated[bool, typer.Option("--spot", help="Spot nodes.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a cluster.yaml that is there.")] = False,
    assets: AssetsDir = HERE,
) -> None:
    """Write cluster.yaml. Nothing is made on AWS."""
    from paddlejob.cloud.aws.assets import Assets
    from paddlejob.cloud.aws.config import read_config
    from paddlejob.cloud.aws.cost import idle_line

    settings: dict[str, Any] = {
        "clusterName": cluster_name,
        "region": region,
        "availabilityZones": availability_zone,
        "externalDNSName": external_dns_name,
        "keyName": key_name,
        "kmsKeyArn": kms_key_arn,
        "maxWorkerCount": max(10, workers),
        "workerCount": workers,
        "workerInstanceType": instance_type,
        "workerSpot": spot,
    }
    config = read_config(settings, "init")
    place = Assets(assets)
    place.init(config, replace)
    typer.echo(f"{place.cluster_yaml} is written: edit it, then `pdj aws validate` and `pdj aws up`")
    typer.echo(idle_line(config))


@app.command()
def render(
    what: Annotated[Rendered, typer.Argument(help="The stack; EKS makes the credentials.")] = Rendered.stack,
    generate_ca: Annotated[bool, typer.Option("--generate-ca", hidden=True)] = False,
    assets: AssetsDir = HERE,
) -> None:
    """Write stack.yaml, the CloudFormation template with the values of cluster.yaml. Asks AWS nothing."""
    if what is Rendered.credentials or generate_ca:
        typer.echo("EKS makes the certificates of the cluster itself: nothing to render")
        return
    from paddlejob.cloud.aws import render as rendering
    from paddlejob.cloud.aws.cost import idle_line

    place, config = _load(assets)
    values = rendering.parameters(config)
    place.stack_yaml.write_text(rendering.template(values), encoding="utf-8")
    typer.echo(f"{place.stack_yaml} is written")
    if len(config.availability_zones) == 1:
        typer.echo(f"the control plane's second zone is taken to be {values['Zone2']}; `up` asks AWS for it")
    typer.echo(idle_line(config))


@app.command()
def validate(
    job: Annotated[list[Path] | None, typer.Option(help="A job's YAML that is to run there; repeatable.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask AWS.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Find what CloudFormation would find late. All faults are listed at once."""
    from paddlejob.cloud.aws import checks, cost
    from paddlejob.cloud.aws.hostports import node_faults

    place, config = _load(assets)
    aws = _aws(config.region, profile)
    faults = checks.offline_faults(aws, config) if offline else checks.faults(aws, config)
    documents = [document for path in job or [] for document in _documents(path)]
    _refuse([f"{place.cluster_yaml}: {fault}" for fault in faults] + node_faults(documents, config.worker_count))
    typer.echo(f"{place.cluster_yaml} is fine" + (" as far as can be told without asking AWS" if offline else ""))
    typer.echo("\n".join(cost.table(cost.idle_items(config))))
    typer.echo(cost.idle_line(config))


@app.command()
def up(
    s3_uri: Annotated[str, typer.Option(help="s3://BUCKET/PREFIX: where the template is put first.")] = "",
    rollback: Annotated[bool, typer.Option("--rollback", help="Undo everything if something fails.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Make the cluster, or bring it to what cluster.yaml says. Run it again, and it goes on."""
    from paddlejob.cloud.aws import checks, cost
    from paddlejob.cloud.aws.publish import to_s3
    from paddlejob.cloud.aws.up import as_text
    from paddlejob.cloud.aws.up import up as bring_up

    place, config = _load(assets)
    stack = _stack(config, profile)
    _refuse([f"{place.cluster_yaml}: {fault}" for fault in checks.faults(stack.aws, config)])

    def publish(template: str) -> dict[str, str]:
        place.stack_yaml.write_text(template, encoding="utf-8")
        return to_s3(stack.aws, s3_uri, config.cluster_name, template) if s3_uri else as_text(template)

    typer.echo(cost.idle_line(config), err=True)
    with _interruptible(config.cluster_name):
        _, changed = bring_up(stack, config, publish, rollback)
    typer.echo(f"cluster {config.cluster_name} is up" + ("" if changed else "; nothing was to be changed"))
    _write_kubeconfig(place, stack.aws, config.cluster_name)


@app.command()
def status(
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.text,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Show the cluster, its address and its nodes."""
    from paddlejob.cloud.aws.cost import idle_line
    from paddlejob.cloud.aws.status import status as look

    _, config = _load(assets)
    stack = _stack(config, profile)
    state = stack.find()
    if state is None:
        raise NotPossible(f"there is no cluster {config.cluster_name} in {config.region}; run `pdj aws up`")
    found = look(stack.aws, state)
    if output is Output.text:
        typer.echo("\n".join([*found.lines(), idle_line(config)]))
    else:
        typer.echo(_dump(found.as_dict(), output))


@app.command()
def scale(
    workers: Annotated[int, typer.Argument(help="How many nodes.")],
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Change the number of nodes, there and in cluster.yaml."""
    from paddlejob.cloud.aws.cost import idle_line
    from paddlejob.cloud.aws.up import scale as change

    place, config = _load(assets)
    with _interruptible(config.cluster_name):
        change(_stack(config, profile), workers)
    place.set_worker_count(workers)
    typer.echo(f"cluster {config.cluster_name} has {workers} nodes")
    typer.echo(idle_line(config.model_copy(update={"worker_count": workers})))


@app.command()
def kubeconfig(assets: AssetsDir = HERE, profile: Profile = None) -> None:
    """Write ./kubeconfig, with which kubectl reaches the cluster."""
    place, config = _load(assets)
    _write_kubeconfig(place, _aws(config.region, profile), config.cluster_name)


@app.command()
def token(
    cluster_name: Annotated[str, typer.Option(help="The cluster.")] = "",
    region: Annotated[str, typer.Option(help="Its region.")] = "",
    plain: Annotated[bool, typer.Option("--plain", help="The token alone.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Print a token for the cluster's API as kubectl wants it. Without options: of the cluster in this directory."""
    from datetime import UTC, datetime

    from paddlejob.cloud.aws import tokens

    if not (cluster_name and region):
        _, config = _load(assets)
        cluster_name, region = cluster_name or config.cluster_name, region or config.region
    made = tokens.token(_aws(region, profile), cluster_name)
    typer.echo(made if plain else json.dumps(tokens.exec_credential(made, datetime.now(UTC))))


@app.command()
def storage(
    csi: Annotated[bool, typer.Option("--csi", help="Mount by the EFS add-on, encrypted on the wire.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Write pv.yaml and pvc.yaml for the cluster's file system."""
    from paddlejob.cloud.aws import storage as files

    place, config = _load(assets)
    name = files.file_system(_stack(config, profile).find(), config.cluster_name)
    place.volume_yaml.write_text(_dump(files.volume(name, config.region, csi), Output.yaml), encoding="utf-8")
    place.claim_yaml.write_text(_dump(files.claim(), Output.yaml), encoding="utf-8")
    typer.echo("Volume and claim `efsvol` are written. To make them:")
    for path in (place.volume_yaml, place.claim_yaml):
        typer.echo(f"  kubectl --kubeconfig={place.kubeconfig} create -f {path}")
    typer.echo("To look at the files from a node:")
    typer.echo(f"  {files.mount_command(name, config.region)}")


@app.command()
def policy(
    account_id: Annotated[str, typer.Option(help="The account; else AWS is asked.")] = "",
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Print the least IAM policy that these commands need, as JSON."""
    from paddlejob.cloud.aws.policy import policy as least

    _, config = _load(assets)
    account = account_id or _aws(config.region, profile).account()
    typer.echo(json.dumps(least(config, account), indent=2))


@app.command()
def destroy(
    keep_data: Annotated[bool, typer.Option("--keep-data", help="Leave the file system and the bucket.")] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return at once.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Try although something is in the way.")] = False,
    assets: AssetsDir = HERE,
    profile: Profile = None,
) -> None:
    """Delete the cluster. Asks before data is lost."""
    from paddlejob.cloud.aws import destroy as removal
    from paddlejob.cloud.aws.cost import kept_line

    _, config = _load(assets)
    stack = _stack(config, profile)
    found = removal.survey(stack)
    if found is None:
        typer.echo(f"there is no cluster {config.cluster_name} in {config.region}: nothing to destroy")
        return
    if found.blockers and not force:
        _in_the_way(found.blockers)
    if found.holdings and not keep_data and not yes:
        _ask_before_loss(config.cluster_name, found.holdings)
    with _interruptible(config.cluster_name):
        removal.destroy(stack, found.state, keep_data, wait=not no_wait)
    typer.echo(f"cluster {config.cluster_name} is " + ("being deleted" if no_wait else "deleted"))
    if keep_data and found.holdings:
        typer.echo("kept: " + ", ".join(found.holdings))
        typer.echo(kept_line(found.state.outputs.get("FileSystemId", "")))


def _load(directory: Path) -> tuple[Assets, ClusterConfig]:
    from paddlejob.cloud.aws.assets import Assets

    place = Assets(directory)
    return place, place.load()


def _aws(region: str, profile: str | None) -> Aws:
    from paddlejob.cloud.aws.session import Aws

    return Aws(region, profile)


def _stack(config: ClusterConfig, profile: str | None) -> Stack:
    from paddlejob.cloud.aws.stack import Stack

    return Stack(_aws(config.region, profile), config.cluster_name, say=lambda line: typer.echo(line, err=True))


def _write_kubeconfig(place: Assets, aws: Aws, name: str) -> None:
    from paddlejob.cloud.aws import kubeconfig as access

    access.write(place.kubeconfig, access.kubeconfig(aws, name))
    typer.echo(f"{place.kubeconfig} is written: kubectl --kubeconfig={place.kubeconfig} get nodes")


def _documents(path: Path) -> list[Any]:
    import yaml

    try:
        return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as bad:
        raise BadInput(f"{path}: cannot be read as YAML: {bad}") from None


def _refuse(faults: list[str]) -> None:
    if faults:
        raise BadInput("\n".join(faults))


def _in_the_way(blockers: list[str]) -> None:
    named = "\n".join(f"  {blocker}" for blocker in blockers)
    raise NotPossible(f"the network cannot be deleted while these are in it (or use --force):\n{named}")


def _ask_before_loss(name: str, holdings: list[str]) -> None:
    lost = " and ".join(holdings)
    if not _at_a_terminal():
        raise BadInput(f"{lost} would be lost; use --keep-data, or --yes to delete it without being asked")
    typer.echo(f"This deletes {lost} for good. --keep-data would leave it.")
    if typer.prompt(f"Type {name} to go on", default="", show_default=False) != name:
        raise BadInput("nothing was deleted")


def _at_a_terminal() -> bool:
    return sys.stdin.isatty()


def _dump(value: dict[str, Any], output: Output) -> str:
    import yaml

    if output is Output.json:
        return json.dumps(value, indent=2)
    return yaml.safe_dump(value, sort_keys=False)


@contextmanager
def _interruptible(name: str) -> Iterator[None]:
    """Ctrl-C ends the watching, not what CloudFormation does."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nCloudFormation goes on with {name}; run the same command again to follow it", err=True)
        raise typer.Exit(130) from None
