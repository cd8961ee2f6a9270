"""A real Kubernetes for the tests, built from Go modules and run on this machine.

Nothing here is part of the product. `build` makes the binaries, `controlplane` runs etcd and the API server on
loopback, `cluster` runs whole nodes in namespaces of their own, `fixtures` hands both to pytest.
"""
