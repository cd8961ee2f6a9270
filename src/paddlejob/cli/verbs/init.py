"""`pdj init`: a commented job file, made from a bundled example that trains as it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from paddlejob.cli.options import Force

REGISTRY = "registry.baidubce.com/paddle-operator"
GPU = "nvidia.com/gpu"
NO_RESOURCES = """            # resources:
            #   limits:
            #     cpu: "2"
            #     memory: 4Gi
            #     nvidia.com/gpu: 1
"""


@dataclass(frozen=True)
class Starter:
    name: str
    about: str
    image: str
    roles: tuple[tuple[str, int, str], ...]
    """Role, replicas and description."""
    command: str = ""


STARTERS = {
    "ps": Starter(
        "wide-and-deep",
        "Parameter servers hold the model, workers train on it (PS mode).",
        f"{REGISTRY}/demo-wide-and-deep:v1",
        (("ps", 2, "Parameter servers. They stop when all workers have finished."), ("worker", 2, "Trainers.")),
    ),
    "collective": Starter(
        "resnet",
        "Workers train together and exchange gradients (Collective mode).",
        f"{REGISTRY}/demo-resnet:v1",
        (("worker", 2, "Trainers."),),
        '["python", "-m", "paddle.distributed.launch", "train_fleet.py"]',
    ),
    "single": Starter("mnist", "One process (Single mode).", "paddlejob/mnist:v1", (("worker", 1, "The trainer."),)),
    "heter": Starter(
        "heter",
        "Heterogeneous trainers between servers and workers (Heter mode).\n"
        "# The bundled example shows the roles and trains nothing: heter training fails inside Paddle 2.6.2.",
        "paddlejob/heter:v1",
        (
            ("ps", 1, "Parameter servers."),
            ("worker", 1, "Trainers of the first stage."),
            ("heter", 1, "Trainers of the second stage, on other devices."),
        ),
    ),
}


class Mode(StrEnum):
    ps = "ps"
    collective = "collective"
    single = "single"
    heter = "heter"
    llm = "llm"


LLM = """\
# Large language models with PaddleFormers or ERNIEKit, on several nodes with 8 GPUs each.
# paddleformers-cli and erniekit start one process per GPU themselves, and find the other nodes by NNODES, RANK,
# MASTER_ADDR and MASTER_PORT, which every pod gets. Check it with `pdj validate FILE`, then `pdj submit FILE`.
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata:
  name: {name}
spec:
  # Restarts after a failure since the last progress; the program resumes from its newest checkpoint.
  backoffLimit: 3
  # If no worker prints a line for half an hour, the job hangs, so it restarts. Must be longer than an evaluation takes.
  stallSeconds: 1800
  worker:
    # Nodes.
    replicas: 2
    template:
      spec:
        # RDMA registers memory of the host; some clusters need hostNetwork as well (spec.intranet: Host).
        containers:
          - name: paddle
            image: registry.example.com/paddleformers:1.2.0-gpu
            # For ERNIEKit: ["erniekit", "train", "/workspace/train.yaml"].
            # In the YAML file: output_dir: /checkpoints/{name} and save_steps. Leave resume_from_checkpoint out: the
            # newest checkpoint is then found at every start.
            command: ["paddleformers-cli", "train", "/workspace/train.yaml"]
            env:
              # What NCCL says about the network it found; set it to WARN once training works.
              - name: NCCL_DEBUG
                value: INFO
              # The network interface of the pods, and the RDMA devices of the nodes (`ibv_devices`).
              - name: NCCL_SOCKET_IFNAME
                value: eth0
              # - name: NCCL_IB_HCA
              #   value: mlx5
            resources:
              limits:
                nvidia.com/gpu: 8
                # The name depends on the device plugin; `kubectl describe node` shows it.
                # rdma/hca: 1
                memory: 800Gi
                cpu: "96"
            securityContext:
              capabilities:
                # RDMA pins memory.
                add: ["IPC_LOCK"]
            volumeMounts:
              - {{name: shm, mountPath: /dev/shm}}
              - {{name: checkpoints, mountPath: /checkpoints}}
              - {{name: workspace, mountPath: /workspace}}
        volumes:
          # Processes of a pod exchange data in shared memory, of which a container has only 64 MiB by default.
          - name: shm
            emptyDir: {{medium: Memory, sizeLimit: 64Gi}}
          # On every node the same directory: a claim with access mode ReadWriteMany.
          - name: checkpoints
            persistentVolumeClaim: {{claimName: checkpoints}}
          - name: workspace
            persistentVolumeClaim: {{claimName: workspace}}
"""


def command(
    mode: Annotated[
        Mode, typer.Argument(help="Training mode: ps, collective, single, heter or llm.", metavar="MODE")
    ] = Mode.ps,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File to write; - is standard output.", metavar="FILE")
    ] = "-",
    name: Annotated[
        str, typer.Option(help="Name of the job. Defaults to the name of the example.", metavar="NAME")
    ] = "",
    program: Annotated[
        str, typer.Option(help="Train this program instead of the bundled example.", metavar="FILE")
    ] = "",
    device: Annotated[
        str, typer.Option(help="Request this device for each worker: gpu, xpu, npu and others.", metavar="KIND")
    ] = "",
    force: Force = False,
) -> None:
    """Create a commented job file to start from.

    \b
    Example:
      pdj init collective -o job.yaml && pdj run job.yaml
    """
    import shlex

    from paddlejob.client.files import check_new_file, write_file
    from paddlejob.errors import BadInput

    if mode is Mode.llm and program:
        raise BadInput(
            "--program: llm is trained by paddleformers-cli or erniekit; use `pdj init collective --program`"
        )
    text = starter_file(mode.value, name, _relative(program, output), _resource(device))
    if output == "-":
        typer.echo(text, nl=False)
        return
    path = check_new_file(output, force)
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{output}: no such directory: {path.parent}; create it first")
    write_file(path, text)
    file = shlex.quote(output)
    typer.echo(f"wrote {output}; run it with `pdj run {file}`, or on a cluster with `pdj submit {file}`")


def _relative(program: str, output: str) -> str:
    """The path of the program from the directory of the job file, where `pdj run` starts it."""
    import os
    from pathlib import Path

    from paddlejob.errors import BadInput

    if not program:
        return ""
    if not Path(program).is_file():
        raise BadInput(f"--program {program}: no such file")
    folder = Path() if output == "-" else Path(output).parent
    return os.path.relpath(program, folder)


def _resource(device: str) -> str:
    from paddlejob.api.devices import parse_devices
    from paddlejob.errors import BadArgument

    if ":" in device:
        raise BadArgument("device", f"{device!r} has a number; name the kind alone, and change the number in the file")
    return parse_devices(device, "device").resource if device else ""


def starter_file(mode: str, name: str = "", program: str = "", resource: str = "") -> str:
    """The text of a job file for a bundled example, or for a program of the user; `resource` is a device."""
    if mode == Mode.llm:
        text = _llm(name, resource or GPU)
        _check(text)
        return text
    starter = _for_program(STARTERS[mode], program) if program else STARTERS[mode]
    text = _head(starter, name or starter.name) + "".join(_role(starter, *role, resource) for role in starter.roles)
    _check(text)
    return text


def _llm(name: str, resource: str) -> str:
    text = LLM.format(name=name or "llm")
    if resource == GPU:
        return text
    before, _, rest = text.partition("            env:\n")  # of NCCL, NVIDIA's library
    after = rest[rest.index("            resources:\n") :]
    return (before.replace("1.2.0-gpu", "1.2.0") + after).replace(GPU, resource)


def _for_program(starter: Starter, program: str) -> Starter:
    import json
    import re
    from dataclasses import replace
    from pathlib import PurePath

    launcher = ["python", "-m", "paddle.distributed.launch"] if "launch" in starter.command else ["python"]
    launcher = ["bash"] if program.endswith(".sh") else launcher
    name = re.sub(r"[^a-z0-9]+", "-", PurePath(program).stem.lower()).strip("-")[:40].strip("-") or starter.name
    command = json.dumps([*launcher, program], ensure_ascii=False)
    return replace(starter, name=name, about=starter.about.partition("\n")[0], image=f"my-{name}:v1", command=command)


def _head(starter: Starter, name: str) -> str:
    gloo = "  # Barriers with gloo: 0 off, 1 workers, 2 workers and servers.\n  withGloo: 1\n"
    return f"""# {starter.about}
# On this machine: pdj run FILE. On a cluster: pdj submit FILE or kubectl apply -f FILE. Preview: pdj plan FILE.
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata:
  name: {name}
spec:
{gloo if len(starter.roles) > 1 else ""}  # How pods reach each other: PodIP, Service (DNS names) or Host.
  intranet: PodIP
  # When pods are deleted after the job has ended: Always, Never, OnFailure or OnCompletion. Use Never for debugging.
  cleanPodPolicy: OnCompletion
  # How often the job restarts after a failure. The program should resume from its own checkpoint.
  backoffLimit: 3
  # 1: the number of workers can change while the job runs (pdj scale).
  elastic: 0
"""


def _role(starter: Starter, role: str, replicas: int, about: str, resource: str) -> str:
    limits = f"            resources:\n              limits:\n                {resource}: 1\n"
    return f"""  # {about}
  {role}:
    replicas: {replicas}
    template:
      spec:
        containers:
          - name: paddle
            # Your image. `pdj run` runs the code in a directory instead: --image NAME=DIR, or the one with this file.
            image: {starter.image}
{_command(starter)}{limits if resource and role != "ps" else NO_RESOURCES}"""


def _command(starter: Starter) -> str:
    if starter.command:
        return f"            command: {starter.command}\n"
    return """\
            # Required when `pdj run` uses a directory of yours; without it, the command of the image runs.
            # command: ["python", "train.py"]
"""


def _check(text: str) -> None:
    """Raises InvalidJob for a name that no job can have."""
    from paddlejob.api.documents import documents
    from paddlejob.api.validate import parse

    parse(documents(text, "the new file")[0], "the new file")
