"""`make chaos`: random faults on a real three-node cluster, then checks that every job ended as it should.

jobs        the population: jobs of all shapes, whose programs leave a heartbeat that the checks read
stage       the cluster with the operator installed, and what faults and checks ask of it
api         lists of objects, read without kubectl
faults      one function per kind of fault
ledger      which fault may have raised which counter of a job
recovery    inject faults and measure the time until everything runs again
watch       the operator's log and its memory during the run
evidence    the state of the cluster when something is wrong
invariants  what must hold in the end
report      the table of faults and recovery times
"""
