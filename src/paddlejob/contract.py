"""Names that users and other programs rely on: changing one breaks a file, a script or a dashboard."""

from __future__ import annotations

GROUP = "batch.paddlepaddle.org"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "PaddleJob"
DEFAULT_NAMESPACE = "default"
PLURAL = "paddlejobs"
SINGULAR = "paddlejob"
SHORT_NAME = "pdj"

LABEL_JOB = f"{GROUP}/job"
LABEL_ROLE = f"{GROUP}/role"
LABEL_INDEX = f"{GROUP}/index"
LABEL_ATTEMPT = f"{GROUP}/attempt"
ANNOTATION_BUILD = f"{GROUP}/build"
"""On a pod: a digest of the part of the spec that it was built from."""
ANNOTATION_WAKE = f"{GROUP}/wake"
"""On a pod: how often, and when last, its kubelet was asked to look at it again."""
ANNOTATION_TRAINING_CONTAINER = f"{GROUP}/training-container"
"""On a pod: the name of the container that trains. Containers that a webhook adds do not change it."""
ANNOTATION_REPLACEMENT = f"{GROUP}/replacement"
"""On a pod: how many pods of its replica were replaced before it in its attempt."""
ANNOTATION_PORT = f"{GROUP}/port"
"""On a job: the port of its pods, instead of PORT. The embedded engine gives each job a block of its own."""
ANNOTATION_CODE = f"{GROUP}/code"
"""On a job: the digest of the code that was shipped with it, and in how many ConfigMaps."""
ANNOTATION_PROGRAM = f"{GROUP}/program"
"""On a job: the name of its program, where the job cannot have that name."""
LABEL_CODE = f"{GROUP}/code"
"""On a ConfigMap: the digest of the code that it holds a part of."""
ANNOTATION_VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_SCHEDULER = "volcano"
VOLCANO_API = "scheduling.volcano.sh/v1beta1"

KUEUE_GROUP = "kueue.x-k8s.io"
KUEUE_VERSIONS = ("v1beta2", "v1beta1")
"""The versions of Kueue's API that can be used, the preferred one first."""
LABEL_QUEUE = f"{KUEUE_GROUP}/queue-name"
"""On a job: the LocalQueue of Kueue in which it waits for quota."""
LABEL_QUEUE_PRIORITY = f"{KUEUE_GROUP}/priority-class"
"""On a job: its WorkloadPriorityClass."""
LABEL_QUEUE_JOB = f"{KUEUE_GROUP}/job-uid"
"""On a Workload: the uid of its job. Kueue ends a Workload that has it and lost its owner."""
LABEL_POD_SET = f"{KUEUE_GROUP}/podset"
ANNOTATION_WORKLOAD = f"{KUEUE_GROUP}/workload"
TOPOLOGY_GATE = f"{KUEUE_GROUP}/topology"
"""On a pod whose node Kueue chooses: the name of its Workload, and the scheduling gate that Kueue removes."""
TOPOLOGY_REQUESTS = {
    "required": f"{KUEUE_GROUP}/podset-required-topology",
    "preferred": f"{KUEUE_GROUP}/podset-preferred-topology",
}
"""On a template: the node label of a topology within one domain of which its pods must, or should, be."""
TOPOLOGY_UNCONSTRAINED = f"{KUEUE_GROUP}/podset-unconstrained-topology"
"""On a pod whose node Kueue chooses although its template does not ask for that."""

MANAGER = f"{GROUP}/operator"
"""The value of spec.managedBy that stands for this operator."""
OLD_FINALIZER = "finalizers.paddlepaddle.org"
"""Set by paddle-operator 0.3.x on its jobs; without that operator only paddlejob removes it."""

TRAINING_CONTAINER = "paddle"
"""The container that trains; in a pod without a container of this name it is the first one."""

PORT = 2379
"""The port of every pod, the same as paddle-operator's. Pods have addresses of their own, so they can share it."""
PORTS_PER_POD = 20
GLOO_PORT_OFFSET = 18
"""Gloo's rendezvous needs a port other than the parameter server's: trainers crash if they share one."""
MASTER_PORT_OFFSET = 19
"""MASTER_PORT, in the block of worker 0. Paddle itself binds the first ports of the block, with or without launcher."""
HOST_PORT_FIRST = 20000
HOST_PORT_LAST = 29999

ENV_POD_IP = "POD_IP"
ENV_PORT = "PADDLE_PORT"
ENV_PORTS_NUM = "TRAINER_PORTS_NUM"
ENV_TRAINER_ID = "PADDLE_TRAINER_ID"
ENV_ROLE = "TRAINING_ROLE"
ENV_ROLE_COLLECTIVE = "PADDLE_TRAINING_ROLE"
ENV_SERVERS = "PADDLE_PSERVERS_IP_PORT_LIST"
ENV_ENDPOINTS = "PADDLE_TRAINER_ENDPOINTS"
ENV_TRAINERS = "PADDLE_TRAINERS"
ENV_TRAINERS_NUM = "PADDLE_TRAINERS_NUM"
ENV_CURRENT_ENDPOINT = "PADDLE_CURRENT_ENDPOINT"
ENV_BACKEND = "PADDLE_DISTRI_BACKEND"
ENV_XCCL = "PADDLE_XCCL_BACKEND"
"""The plugin of a device that Paddle communicates with by xccl."""
ENV_GLOO = "PADDLE_WITH_GLOO"
ENV_GLOO_RENDEZVOUS = "PADDLE_GLOO_RENDEZVOUS"
ENV_GLOO_ENDPOINT = "PADDLE_GLOO_HTTP_ENDPOINT"
ENV_JOB_ID = "SYS_JOB_ID"
ENV_HETER_ALL = "PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST"
ENV_HETER_NEXT = "PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST"
ENV_HETER_PREVIOUS = "PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST"
ENV_HETER_DEVICE = "HETER_DEVICE_TYPE"
ENV_STAGE_ID = "STAGE_ID"
ENV_STAGE_NUM = "STAGE_NUM"
ENV_STAGE_TRAINERS = "PADDLE_STAGE_TRAINERS_NUM"
ENV_NNODES = "NNODES"
ENV_RANK = "RANK"
ENV_MASTER_ADDR = "MASTER_ADDR"
ENV_MASTER_PORT = "MASTER_PORT"
"""PaddleFormers and ERNIEKit delete the variables of Paddle and read these four."""
ENV_INSTANCES = "TRAINER_INSTANCES"
ENV_POD_INDEX = "POD_INDEX"
ENV_RANK_OF = "PADDLEJOB_RANK_"
"""Followed by the index of a worker of an elastic job: its rank in the attempt."""
ENV_HOST_OPEN = "PADDLEJOB_HOST_OPEN"
ENV_HOST_CLOSE = "PADDLEJOB_HOST_CLOSE"
"""Brackets around an IPv6 address, empty for IPv4; known once pods have addresses."""

ENV_AGENT_URL = "PADDLEJOB_AGENT_URL"
ENV_AGENT_ATTEMPT = "PADDLEJOB_AGENT_ATTEMPT"
"""Read by the agent, which removes them from the environment of the program."""
AGENT_DIRECTORY = "/paddlejob/agent"
"""In a pod with an agent: agent.py, ca.crt and token."""
AGENT_AUDIENCE = f"agents.{GROUP}"
"""Of the tokens by which agents show which pod they are in."""
ATTEMPT_MARKER = "paddlejob: attempt {} begins in place"
"""The line in the log of a pod with which the output of an attempt begins that was started in place."""

ENV_JOINS = "PADDLEJOB_JOINS"
"""1 in a worker that joins while others train: it must neither initialize nor load the model."""
KEEP_PARAMETERS = "TEST_MODE"
"""Paddle's name for it: if 1, the first worker does not push its initial parameters to the servers."""

ENV_LOG_DIR = "PADDLE_LOG_DIR"
"""Where Paddle's launcher writes the logs of its processes: pods that share a directory must not share them."""
ENV_UNBUFFERED = "PYTHONUNBUFFERED"
"""Without it, what a program prints appears in the log of its pod minutes later."""

ENV_VALUE_LIMIT = 128 * 1024 - 1
"""The longest `NAME=value` string that execve accepts."""

MOST_REPLICAS = 10_000
"""Of one role. The environment of a job of this size exceeds ENV_VALUE_LIMIT."""
DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""The names of jobs, namespaces, containers and volumes."""
LABEL_KEY = (
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
"""The key of a label: a name, and a domain and a slash before it if it has a prefix."""
LABEL_KEY_LIMIT = 253 + 1 + 63
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
LABEL_VALUE_LIMIT = 63
QUANTITY = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
"""The quantities of Kubernetes: 2, "500m", "1.5Gi", "1e3"."""

EVENT_SOURCE = "paddlejob"
"""The component that events on a job name as their source."""
