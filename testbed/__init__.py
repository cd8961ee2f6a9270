"""A real Kubernetes for the tests, built from Go modules and run on this machine. Not part of the product.

controlplane   etcd and the API server on loopback        fixtures   both for pytest
cluster        a control plane and nodes in namespaces    commands   both for `python -m testbed`

build          Go binaries and Debian packages            credentials   certificates and kubeconfig files
nodes          kubelet, containerd and cgroups of a node  network       namespaces and the way into them
images         container images and their registry        addons        CoreDNS, KWOK, Volcano, Kueue, HDFS
"""
