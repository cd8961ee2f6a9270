"""A go.mod from which the commands of another module build as in their own repository."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from paddlejob.errors import NotPossible
from testbed.build.recipes import Recipe


def module_file(go: str, one: Recipe, directory: Path) -> None:
    """Write go.mod, and main.go if the recipe has one, to `directory`.

    The checksums of the module's dependencies are its own: a checksum database may not know all of them.
    """
    source = _download(go, one)
    own = _run(go, ["mod", "edit", "-json", source["GoMod"]])
    (directory / "go.mod").write_text(go_mod(one, own))
    checksums = Path(source["Dir"], "go.sum")
    if checksums.exists():
        (directory / "go.sum").write_bytes(checksums.read_bytes())
    if one.main:
        (directory / "main.go").write_text(one.main)


def source_directory(go: str, one: Recipe) -> Path:
    """Return the directory of the module's source, for files that are not Go: manifests, charts."""
    return Path(_download(go, one)["Dir"])


def go_mod(one: Recipe, own: dict[str, Any]) -> str:
    """Return the text of go.mod. `own` is the module's own go.mod as JSON, whose replaces must be repeated to apply."""
    lines = ["module testbed", f"go {own['Go']}"]
    lines += [f"godebug {setting['Key']}={setting['Value']}" for setting in own.get("Godebug") or []]
    lines.append(f"require {one.module} {one.version}")
    lines += [_replace(rule, one.version) for rule in own.get("Replace") or [] if _is_needed(rule)]
    return "\n".join(lines) + "\n"


def _is_needed(rule: dict[str, Any]) -> bool:
    local = rule["New"]["Path"].startswith(".")
    return not local or "/staging/" in rule["New"]["Path"]


def _replace(rule: dict[str, Any], version: str) -> str:
    old, new = rule["Old"], rule["New"]
    left = " ".join(filter(None, [old["Path"], old.get("Version")]))
    if new["Path"].startswith("."):
        # Kubernetes v1.36.3 publishes its staging modules as v0.36.3.
        return f"replace {left} => {old['Path']} v0.{version.split('.', 1)[1]}"
    return f"replace {left} => {new['Path']} {new['Version']}"


def _download(go: str, one: Recipe) -> dict[str, Any]:
    return _run(go, ["mod", "download", "-json", f"{one.module}@{one.version}"])


def _run(go: str, arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run([go, *arguments], cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL)
    answer: dict[str, Any] = json.loads(done.stdout or "{}")
    if done.returncode:
        reason = answer.get("Error") or done.stderr.strip()
        raise NotPossible(f"go {' '.join(arguments)} failed: {reason}")
    return answer
