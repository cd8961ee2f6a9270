"""Names that the outside world sees: change one and somebody's file, script or dashboard breaks."""

from __future__ import annotations

GROUP = "batch.paddlepaddle.org"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "PaddleJob"
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
"""On a pod: how often, and when last, its kubelet was asked to look again."""
ANNOTATION_PORT = f"{GROUP}/port"
"""On a job: where its pods listen, instead of PORT. The embedded engine gives each job a block of its own."""
ANNOTATION_VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_SCHEDULER = "volcano"
VOLCANO_API = "scheduling.volcano.sh/v1beta1"

OLD_FINALIZER = "finalizers.paddlepaddle.org"
"""What paddle-operator 0.3.x left on its jobs; nobody removes it any more but us."""

TRAINING_CONTAINER = "paddle"
"""The container whose exit decides; a pod without one of this name is judged by its first container."""

PORT = 2379
"""Where a pod listens, as in the seeds' system. Every pod has an address of its own, so all use the same."""
PORTS_PER_POD = 20
GLOO_PORT_OFFSET = 18
"""Gloo's rendezvous may not share the port of the parameter server (trainers die)."""
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
ENV_HOST_OPEN = "PADDLEJOB_HOST_OPEN"
ENV_HOST_CLOSE = "PADDLEJOB_HOST_CLOSE"
"""Brackets around an IPv6 address, else empty; known only once the addresses are."""

ENV_VALUE_LIMIT = 128 * 1024 - 1
"""execve takes no longer `NAME=value` string."""

MOST_REPLICAS = 10_000
"""Of one role. The environment of so many is longer than a process can be given: see ENV_VALUE_LIMIT."""
QUANTITY = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
"""2, "500m", "1.5Gi", "1e3": what Kubernetes takes for an amount."""

FIELD_MANAGER = "paddlejob"
EVENT_SOURCE = "paddlejob"
