"""The channel of agents in pods: one HTTPS request that each holds open to the leader, and what is said over it.

`agents.py` remembers what agents report and what they are ordered to do; nothing of it is stored, because agents report
again. `identity.py` says which pod a request comes from, `authority.py` makes the certificates, `server.py` serves.
"""
