"""`make chaos`: random faults on a real three-node cluster, then checks that every job ended as it should.

jobs        the population: jobs of all shapes, whose programs leave a heartbeat that the checks read
stage       the cluster with the operator installed, and what faults and checks ask of it
faults      one function per kind of fault, in a table
nodes       faults of nodes and of the control plane
recovery    inject faults and measure the time until everything runs again
invariants  what must hold in the end
report      the table of faults and recovery times
"""
