"""Which binary is built from which Go module."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paddlejob.errors import BadInput

DEFAULT_KUBERNETES = "v1.36.3"
KUBERNETES_PARTS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubectl",
)
COREDNS_PLUGINS = ("bind", "errors", "cache", "kubernetes", "loadbalance")


@dataclass(frozen=True)
class Recipe:
    """A Go package of a module at a version, or a main program here that uses that module."""

    name: str
    module: str
    version: str
    package: str
    main: str = ""
    ldflags: str = "-s -w"
    tags: str = ""


def recipe(name: str) -> Recipe:
    """Return how to build the binary `name`."""
    if name in KUBERNETES_PARTS:
        return _kubernetes(name, kubernetes_version())
    if name not in _OTHERS:
        raise BadInput(f"{name}: unknown binary; choose one of {', '.join(names())}")
    return _OTHERS[name]


def names() -> list[str]:
    return [*KUBERNETES_PARTS, *_OTHERS]


@cache
def kubernetes_version() -> str:
    """Return K8S_VERSION, or the version in KUBEBUILDER_ASSETS, or the default."""
    if chosen := os.environ.get("K8S_VERSION"):
        return "v" + chosen.removeprefix("v")
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (server := Path(assets, "kube-apiserver")).exists():
        output = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout
        return output.split()[-1]
    return DEFAULT_KUBERNETES


def _kubernetes(name: str, version: str) -> Recipe:
    # Without the stamp the server reports v0.0.0, and clients warn.
    major, minor = version.removeprefix("v").split(".")[:2]
    stamp = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamp.items()]
    return Recipe(
        name,
        module="k8s.io/kubernetes",
        version=version,
        package=f"k8s.io/kubernetes/cmd/{name}",
        ldflags=" ".join(["-s -w", *stamps]),
    )


def _main(imports: list[str], call: str) -> str:
    lines = "\n".join(f"\t{line}" for line in imports)
    return f"package main\n\nimport (\n{lines}\n)\n\nfunc main() {{ {call} }}\n"


_ETCD_MAIN = _main(['"os"', '"go.etcd.io/etcd/server/v3/etcdmain"'], "etcdmain.Main(os.Args)")
_COREDNS_MAIN = _main(
    [
        '"github.com/coredns/coredns/coremain"',
        *(f'_ "github.com/coredns/coredns/plugin/{plugin}"' for plugin in COREDNS_PLUGINS),
    ],
    "coremain.Run()",
)

_OTHERS = {
    one.name: one
    for one in (
        # The root module of etcd cannot be built from another module: its replaces are local.
        Recipe("etcd", "go.etcd.io/etcd/server/v3", "v3.6.8", ".", _ETCD_MAIN),
        Recipe("kwok", "sigs.k8s.io/kwok", "v0.7.0", "sigs.k8s.io/kwok/cmd/kwok"),
        Recipe("coredns", "github.com/coredns/coredns", "v1.12.4", ".", _COREDNS_MAIN),
        Recipe("vc-scheduler", "volcano.sh/volcano", "v1.10.0", "volcano.sh/volcano/cmd/scheduler"),
        Recipe(
            "vc-controller-manager",
            "volcano.sh/volcano",
            "v1.10.0",
            "volcano.sh/volcano/cmd/controller-manager",
        ),
        Recipe("kueue", "sigs.k8s.io/kueue", "v0.19.0", "sigs.k8s.io/kueue/cmd/kueue"),
        Recipe("helm", "helm.sh/helm/v3", "v3.18.6", "helm.sh/helm/v3/cmd/helm"),
        # Without service discovery, of which the clients of all clouds are most of the build.
        Recipe(
            "promtool",
            "github.com/prometheus/prometheus",
            "v0.315.0",
            "github.com/prometheus/prometheus/cmd/promtool",
            tags="remove_all_sd",
        ),
    )
}
