"""A stage on the embedded engine: real processes that a story controls through files."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from paddlejob.local.engine import LocalEngine
from paddlejob.local.state.changes import change_spec, mark_for_deletion
from paddlejob.local.state.store import JobFolder
from tests.support import expecting
from tests.support.builders import document

Object = dict[str, Any]
CPUS = 4
"""Of the machine; each pod requests one."""
PUPPET = Path(__file__).with_name("puppet.py")


class LocalStage:
    def __init__(self, engine: LocalEngine, strings: Path) -> None:
        self.engine = engine
        self._strings = strings

    @property
    def _folder(self) -> JobFolder:
        return self.engine.store.folder(("default", "story"))

    async def submit(self, **options: Any) -> None:
        made = document("story", **options)
        for role in ("ps", "worker", "heter"):
            if role in made["spec"]:
                made["spec"][role]["template"] = self._template()
        await self.engine.submit(made)

    def _template(self) -> Object:
        fields = {"STORY_POD": "metadata.name", "STORY_UID": "metadata.uid"}
        env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
        command = ["python3", str(PUPPET), str(self._strings)]
        return {
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {
                        "name": "paddle",
                        "image": "puppet",
                        "command": command,
                        "env": env,
                        "resources": {"requests": {"cpu": 1}},
                    }
                ],
            }
        }

    async def room(self, pods: int) -> None:
        """Another job holds the other CPUs."""
        folder = self.engine.store.folder(("default", "other"))
        if folder.document():
            mark_for_deletion(folder, time.time())
            await self.engine.wait_until_idle(folder.key)
        if pods < CPUS:
            other = document("other", workers=1)
            container: Object = {"name": "paddle", "image": "other", "command": ["sleep", "300"]}
            container["resources"] = {"requests": {"cpu": CPUS - pods}}
            other["spec"]["worker"]["template"] = {
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}
            }
            await self.engine.submit(other)
            await expecting.until(lambda: self._status(folder), {"phase": "Running"})

    async def _status(self, folder: JobFolder) -> Object:
        status = self.engine.status(folder.key)
        return status.model_dump(mode="json") if status else {}

    async def status(self) -> Object:
        return await self._status(self._folder)

    async def until(self, **expected: Any) -> Object:
        return await expecting.until(self.status, expected)

    async def pods(self) -> dict[str, str]:
        return {one.name: one.uid for one in self._folder.pods() if not one.removed}

    async def exit(self, pod: str, code: int, message: str = "") -> None:
        uid = (await self._running(pod))[1]
        (self._strings / f"{pod}.{uid}.end").write_text(json.dumps({"code": code, "message": message}))

    async def environment(self, pod: str) -> dict[str, str]:
        found: dict[str, str] = json.loads((await self._running(pod))[0].read_text())
        return found

    async def change(self, **fields: Any) -> None:
        workers = fields.pop("workers", None)
        if workers is not None:
            fields["worker"] = {"replicas": workers}
        change_spec(self._folder, **fields)

    async def until_gone(self, *pods: str) -> None:
        ends = time.monotonic() + 60
        while left := [pod for pod in pods if pod in await self.pods()]:
            assert time.monotonic() < ends, f"still there: {left}"
            await asyncio.sleep(0.1)

    async def _running(self, pod: str) -> tuple[Path, str]:
        """The file with the environment of the pod's program, and the pod's uid."""
        ends = time.monotonic() + 60
        while True:
            uid = (await self.pods()).get(pod, "")
            path = self._strings / f"{pod}.{uid}.json"
            if uid and path.exists():
                return path, uid
            assert time.monotonic() < ends, f"{pod} does not run"
            await asyncio.sleep(0.05)
