"""Faults, one function per kind: what it does, how it is undone, and which counters of which jobs it may raise.

hit            what a fault returns
pods           processes and pods
objects        ConfigMaps, Services, names that are taken, quotas and webhooks
jobs           what users do to jobs, and what programs do
operator       the operator, its deployment and its lease
nodes          nodes and what runs on them
control_plane  etcd, the API server, the scheduler and the controllers
clocks         clocks of nodes and of the operator, daylight saving time
tenants        a user of another namespace who forges, plants and stalls
"""

from tools.chaos.faults.clocks import OF_CLOCKS
from tools.chaos.faults.control_plane import OF_THE_CONTROL_PLANE
from tools.chaos.faults.hit import Fault, name_of_fault
from tools.chaos.faults.jobs import OF_JOBS
from tools.chaos.faults.nodes import OF_NODES
from tools.chaos.faults.objects import OF_OBJECTS
from tools.chaos.faults.operator import OF_THE_OPERATOR
from tools.chaos.faults.pods import OF_PODS
from tools.chaos.faults.tenants import OF_TENANTS

ALL: tuple[Fault, ...] = (
    *OF_PODS, *OF_OBJECTS, *OF_JOBS, *OF_THE_OPERATOR, *OF_NODES, *OF_THE_CONTROL_PLANE,
    *OF_CLOCKS, *OF_TENANTS,
)  # fmt: skip
FAULTS = {name_of_fault(fault).replace(" ", "-"): fault for fault in ALL}
