"""A control plane on loopback: etcd, the API server, and optionally controllers, scheduler and fake nodes."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed import flags
from testbed.access import Access
from testbed.addons import kwok
from testbed.build.binaries import Say, binaries
from testbed.credentials import kubeconfig
from testbed.credentials.certificates import Authority
from testbed.network.ports import free_port
from testbed.process import Process
from testbed.scratch import Scratch


class ControlPlane(Access):
    """A real API server. `with ControlPlane() as plane: plane.kubectl("get", "namespaces")`.

    controllers: run kube-controller-manager (garbage collection, service accounts, namespaces).
    scheduler: run kube-scheduler.  fake_nodes: run KWOK with this many nodes.
    extra: additional flags by program, such as {"kube-apiserver": ["--feature-gates=GenericWorkload=true"]}.
    """

    def __init__(
        self,
        *,
        controllers: bool = True,
        scheduler: bool = False,
        fake_nodes: int = 0,
        endpoint: flags.Endpoint | None = None,
        extra: Mapping[str, Sequence[str]] | None = None,
        say: Say | None = None,
    ) -> None:
        self.keep_logs = False
        self._fake_nodes = fake_nodes
        self._extra = extra or {}
        wanted = ["etcd", "kube-apiserver", "kubectl"]
        wanted += ["kube-controller-manager"] if controllers else []
        wanted += ["kube-scheduler"] if scheduler else []
        wanted += ["kwok"] if fake_nodes else []
        self._binaries = binaries(*wanted, say=say)
        self._scratch = Scratch()
        self.directory = self._scratch.path
        self.authority = Authority(self.directory)
        self._layout = self._lay_out(endpoint or flags.Endpoint())
        self.kubectl_path = self._binaries["kubectl"]
        self.kubeconfig = self.kubeconfig_of("admin", "admin", "system:masters")
        self.processes = {name: self._process(name) for name in wanted if name != "kubectl"}

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._layout.outside_port}"

    @property
    def enter(self) -> tuple[str, ...]:
        """The command prefix that runs a program in the network namespace of the control plane."""
        return self._layout.endpoint.enter

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.keep_logs = True
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.keep_logs = self.keep_logs or error is not None
        self.stop()

    def start(self) -> None:
        """Start everything and wait until the API server and the fake nodes are ready."""
        self.processes["etcd"].start()
        self.start_apiserver()
        for name in ("kube-controller-manager", "kube-scheduler", "kwok"):
            if name in self.processes:
                self.processes[name].start()
        if self._fake_nodes:
            self.kubectl("create", "-f", "-", input=json.dumps(kwok.nodes(self._fake_nodes)))
            self.kubectl("wait", "--for=condition=Ready", "nodes", "-l", "type=kwok", "--timeout=60s")

    def stop(self) -> None:
        """Kill all processes and delete the data, and the logs unless `keep_logs` is set."""
        self._end_processes()
        if self.keep_logs:
            shutil.rmtree(self.directory / "etcd", ignore_errors=True)
        else:
            self._scratch.remove()

    def start_apiserver(self) -> None:
        server = self.processes["kube-apiserver"]
        server.start()
        server.wait_until(self.ready)

    def kill_apiserver(self) -> None:
        """Simulate a crash: connections are not closed cleanly. `start_apiserver` starts it again."""
        self.processes["kube-apiserver"].kill()

    def restart_apiserver(self) -> None:
        self.processes["kube-apiserver"].stop(patience=5)
        self.start_apiserver()

    def restart_controllers(self) -> None:
        """Let the garbage collector know new resource types at once: it looks for them only every 30 s."""
        self.processes["kube-controller-manager"].kill()
        self.processes["kube-controller-manager"].start()

    def pause_etcd(self) -> None:
        """Freeze etcd: requests that need it hang until `resume_etcd`."""
        self.processes["etcd"].pause()

    def resume_etcd(self) -> None:
        self.processes["etcd"].resume()

    def ready(self) -> bool:
        """Whether the API server reports that it is ready."""
        port = self._layout.outside_port
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=self._tls())
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kubeconfig_of(self, file: str, user: str, group: str = "") -> Path:
        """Write a kubeconfig with a client certificate for `user`, a member of `group`."""
        return self._write_kubeconfig(file, self.url, user, group)

    def kubeconfig_inside(self, user: str, group: str = "") -> Path:
        """Write the same for a program in the network namespace of the control plane."""
        return self._write_kubeconfig(user.replace(":", "-"), self._layout.url, user, group)

    def _lay_out(self, endpoint: flags.Endpoint) -> flags.Layout:
        issue = self.authority.issue
        hosts = ["127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1", endpoint.address]
        return flags.Layout(
            directory=self.directory,
            endpoint=endpoint,
            port=endpoint.port or free_port(),
            etcd_port=free_port(),
            authority=self.authority.pair,
            server=issue("apiserver", "kube-apiserver", hosts=sorted(set(hosts))),
            admin=issue("kubelet-client", "kubelet-client", "system:masters"),
            accounts=issue("service-accounts", "service-accounts"),
        )

    def _process(self, name: str) -> Process:
        own = [self._binaries[name], *self._flags(name), *self._extra.get(name, [])]
        return Process([*self.enter, *map(str, own)], self.directory / f"{name}.log", name)

    def _flags(self, name: str) -> list[str]:
        match name:
            case "etcd":
                return flags.etcd(self._layout, free_port())
            case "kube-apiserver":
                return flags.apiserver(self._layout)
            case "kube-controller-manager":
                return flags.controller_manager(self._layout, self.kubeconfig_inside(f"system:{name}"))
            case "kube-scheduler":
                return flags.scheduler(self.kubeconfig_inside(f"system:{name}"), self.directory)
        return kwok.flags(self.kubeconfig, free_port())

    def _write_kubeconfig(self, file: str, server: str, user: str, group: str) -> Path:
        shown = kubeconfig.by_certificate(self.authority.issue(file, user, group))
        path = self.directory / f"{file}.kubeconfig"
        return kubeconfig.write(path, server, self.authority.pair.certificate, shown)

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._layout.authority.certificate))
        context.load_cert_chain(self._layout.admin.certificate, self._layout.admin.key)
        return context

    def _end_processes(self) -> None:
        for process in reversed(self.processes.values()):
            process.kill()
