"""Which files at a destination were staged by pdj, and may therefore be replaced or removed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from paddlejob.data.drivers.urls import is_below
from paddlejob.data.manifest import STAGED, StagedFile
from paddlejob.data.stores.base import Store, read_journal
from paddlejob.errors import BadInput


@dataclass(frozen=True)
class Owned:
    known: dict[str, StagedFile]
    """Files that earlier runs have recorded."""
    started: frozenset[str]
    """Files that a killed run may have staged without recording it."""

    @property
    def names(self) -> frozenset[str]:
        return self.started | self.known.keys()

    def stale(self, wanted: set[str]) -> set[str]:
        """Return our files that are to be removed: no longer in the source, or blocking a file that is."""
        directories = parents(wanted)
        blocking = {name for name in self.started if name in directories or parents([name]) & wanted}
        return (self.known.keys() - wanted) | blocking


def read_owned(store: Store) -> Owned:
    """Read what earlier runs have staged, both the last finished run and one that was killed."""
    journal = read_journal(store)
    if any("request" in entry for entry in journal):
        raise BadInput(f"{store.url} contains an unfinished split; finish that split, or choose another directory")
    try:
        finished = json.loads(store.read(STAGED) or b"{}")
        files = [StagedFile(**file) for entry in (finished, *journal) for file in entry.get("files", ())]
        started = [name for entry in journal for name in entry.get("bringing", ())]
        # Files of these names may be removed, so none of them may point outside the directory.
        return Owned(
            {file.name: file for file in files if is_below(file.name)},
            frozenset(name for name in started if is_below(name)),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{store.url}: its {STAGED} is invalid; remove it, and pass --overwrite to stage all files again"
        ) from error


def check_not_foreign(store: Store, wanted: set[str], owned: Owned) -> None:
    foreign = sorted(store.occupied(wanted - owned.names))
    if foreign:
        raise BadInput(
            f"{store.url}: already contains {foreign[0]}, which was not staged by pdj; "
            "choose another directory, or pass --overwrite to replace it"
        )


def blocking_directories(store: Store, wanted: set[str], owned: Owned) -> list[str]:
    """Return the directories where files are to be written; reject any with content that is not ours."""
    ours = owned.names | parents(owned.names)
    found = store.directories(wanted)
    for name, content in sorted(found.items()):
        foreign = sorted(path for path in (name, *content) if path not in ours)
        if foreign:
            content_of = "" if foreign[0] == name else f" that contains {foreign[0]}"
            raise BadInput(
                f"{store.url}: {name} is a directory{content_of}, which was not staged by pdj; "
                "move it away, or choose another directory"
            )
    return sorted(found)


def parents(names: Iterable[str]) -> set[str]:
    """Return the directories that the named files are in."""
    return {str(above) for name in names for above in PurePosixPath(name).parents} - {"."}
