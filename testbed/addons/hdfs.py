"""A real HDFS on loopback: Hadoop's name node and data node, whose jars Maven fetches once into the cache."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.request import urlopen

from paddlejob.errors import NotPossible
from testbed.build.binaries import cache_directory
from testbed.network.ports import free_port
from testbed.process import Process
from testbed.scratch import Scratch

VERSION = "3.4.1"
# Without the last entry, Maven resolves a release of it that is too old for Hadoop.
ARTIFACTS = {
    "org.apache.hadoop:hadoop-common": VERSION,
    "org.apache.hadoop:hadoop-hdfs": VERSION,
    "org.apache.hadoop:hadoop-hdfs-client": VERSION,
    "com.fasterxml.jackson.core:jackson-core": "2.12.7",
}
_LOGGING = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c{2}: %m%n
"""


def missing() -> str:
    """Return why HDFS cannot run here, or an empty string."""
    programs = [name for name in ("java", "mvn") if not shutil.which(name)]
    return f"a real HDFS needs {' and '.join(programs)}" if programs else ""


def jars() -> Path:
    """Return the directory with Hadoop's jars, fetching them unless they are cached."""
    target = cache_directory() / f"hdfs-{VERSION}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="hdfs-") as name:
        here = Path(name)
        (here / "pom.xml").write_text(_pom())
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
        command = ["mvn", "-B", "-q", goal, "-DincludeScope=runtime", f"-DoutputDirectory={here}/jars"]
        # A separate local repository, deleted with the directory.
        done = subprocess.run(
            [*command, f"-Dmaven.repo.local={here}/repository"], cwd=here, capture_output=True, text=True
        )
        if done.returncode:
            raise NotPossible(f"mvn could not fetch Hadoop {VERSION}: {done.stdout[-2000:]}")
        (here / "jars").rename(target)
    return target


class Hdfs:
    """One name node and one data node while the context lasts: `with Hdfs() as hdfs: hdfs.url`."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        here = self._scratch.path
        self._rpc, self._http = free_port(), free_port()
        self._configure(here / "conf")
        # As Hadoop's start script does for this version of Java.
        opened = [
            option
            for package in ("lang", "util", "io")
            for option in ("--add-opens", f"java.base/java.{package}=ALL-UNNAMED")
        ]
        java = ["java", "-Xmx256m", *opened, "-cp", f"{here}/conf:{jars()}/*"]
        server = "org.apache.hadoop.hdfs.server"
        self._name_node = [*java, f"{server}.namenode.NameNode"]
        self.name_node = Process(self._name_node, here / "namenode.log", "namenode")
        self.data_node = Process([*java, f"{server}.datanode.DataNode"], here / "datanode.log", "datanode")

    @property
    def url(self) -> str:
        return f"webhdfs://127.0.0.1:{self._http}"

    def __enter__(self) -> Self:
        formatted = subprocess.run([*self._name_node, "-format", "-nonInteractive"], capture_output=True, text=True)
        if formatted.returncode:
            raise NotPossible(f"the name node could not be formatted: {formatted.stderr[-2000:]}")
        self.name_node.start()
        self.data_node.start()
        self.name_node.wait_until(self._is_ready)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.data_node.kill()
        self.name_node.kill()
        self._scratch.remove()

    def can_read(self, path: str) -> bool:
        """Whether the data node serves a file; it has to report to the name node first."""
        try:
            with urlopen(f"http://127.0.0.1:{self._http}/webhdfs/v1{path}?op=OPEN&length=1", timeout=5):
                return True
        except OSError:
            return False

    def _is_ready(self) -> bool:
        query = "jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        try:
            with urlopen(f"http://127.0.0.1:{self._http}/{query}", timeout=5) as answer:
                [state] = json.load(answer)["beans"]
        except (OSError, ValueError):
            return False
        return bool(state["FSState"] == "Operational" and state["NumLiveDataNodes"] == 1)

    def _configure(self, conf: Path) -> None:
        here = conf.parent
        conf.mkdir()
        (conf / "log4j.properties").write_text(_LOGGING)
        _write(
            conf / "core-site.xml", {"fs.defaultFS": f"hdfs://127.0.0.1:{self._rpc}", "hadoop.tmp.dir": f"{here}/tmp"}
        )
        _write(
            conf / "hdfs-site.xml",
            {
                "dfs.namenode.http-address": f"127.0.0.1:{self._http}",
                "dfs.datanode.hostname": "127.0.0.1",
                "dfs.datanode.address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.http.address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.ipc.address": f"127.0.0.1:{free_port()}",
                "dfs.replication": "1",
                "dfs.permissions.enabled": "false",
            },
        )
        # The jars lack the pages of the web interface; the servers only check that the directories exist.
        for name in ("hdfs", "datanode"):
            (conf / "webapps" / name).mkdir(parents=True)


def _write(path: Path, settings: Mapping[str, str]) -> None:
    lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()]
    path.write_text(f"<configuration>{''.join(lines)}</configuration>")


def _pom() -> str:
    wanted = [
        "<dependency>"
        f"<groupId>{name.partition(':')[0]}</groupId><artifactId>{name.partition(':')[2]}</artifactId>"
        f"<version>{version}</version></dependency>"
        for name, version in ARTIFACTS.items()
    ]
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>testbed</groupId><artifactId>hdfs</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{''.join(wanted)}</dependencies></project>"
    )
