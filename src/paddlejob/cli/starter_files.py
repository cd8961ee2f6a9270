"""The text of a starting file, by mode: a bundled example that trains as it stands, with what one changes first."""

from __future__ import annotations

from dataclasses import dataclass

from paddlejob.api.validate import parse

DOCUMENTS = "registry.baidubce.com/paddle-operator"


@dataclass(frozen=True)
class Start:
    name: str
    about: str
    image: str
    roles: tuple[tuple[str, int, str], ...]
    """Role, replicas, and what the role does."""
    command: str = ""


STARTS = {
    "ps": Start(
        "wide-and-deep",
        "Parameter servers hold the model, workers train on it (PS mode).",
        f"{DOCUMENTS}/demo-wide-and-deep:v1",
        (("ps", 2, "Parameter servers. They are stopped when all workers are done."), ("worker", 2, "Trainers.")),
    ),
    "collective": Start(
        "resnet",
        "Workers train together and exchange gradients (Collective mode).",
        f"{DOCUMENTS}/demo-resnet:v1",
        (("worker", 2, "Trainers."),),
        '["python", "-m", "paddle.distributed.launch", "train_fleet.py"]',
    ),
    "single": Start("mnist", "One process (Single mode).", "paddlejob/mnist:v1", (("worker", 1, "The trainer."),)),
    "heter": Start(
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


def starting_file(mode: str, name: str = "") -> str:
    start = STARTS[mode]
    text = _head(start, name or start.name) + "".join(_role(start, *role) for role in start.roles)
    _check(text)
    return text


def _head(start: Start, name: str) -> str:
    gloo = "  # Barriers through gloo: 0 off, 1 workers, 2 workers and servers.\n  withGloo: 1\n"
    return f"""# {start.about}
# Here: pdj run FILE.  On a cluster: pdj submit FILE, or kubectl apply -f FILE.  What it becomes: pdj plan FILE.
apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata:
  name: {name}
spec:
{gloo if len(start.roles) > 1 else ""}  # How pods reach each other: PodIP, Service (DNS names) or Host.
  intranet: PodIP
  # Which pods are deleted in the end: Always, Never, OnFailure or OnCompletion. Never is good for looking into things.
  cleanPodPolicy: OnCompletion
  # How often the job is rebuilt after its program failed. It should resume from its own checkpoint.
  backoffLimit: 3
  # 1: workers may be scaled while the job runs (pdj scale).
  elastic: 0
"""


def _role(start: Start, role: str, replicas: int, about: str) -> str:
    return f"""  # {about}
  {role}:
    replicas: {replicas}
    template:
      spec:
        containers:
          - name: paddle
            # Your image. Embedded, a directory stands for it: --image NAME=DIR, or this file's if the name is unknown.
            image: {start.image}
{_command(start)}            # resources:
            #   limits:
            #     cpu: "2"
            #     memory: 4Gi
            #     nvidia.com/gpu: 1
"""


def _command(start: Start) -> str:
    if start.command:
        return f"            command: {start.command}\n"
    return """\
            # Needed where a directory of yours stands for the image; without it the image's own command runs.
            # command: ["python", "train.py"]
"""


def _check(text: str) -> None:
    """A file that we write is a good one; a name that is not says so here."""
    from paddlejob.api.documents import documents

    parse(documents(text, "the new file")[0], "the new file")
