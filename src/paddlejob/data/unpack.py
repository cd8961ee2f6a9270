"""Making a source seekable: compressed files and web pages are first written out, plain, to scratch."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO

from paddlejob.data.local_files import LocalFiles
from paddlejob.data.newlines import CHUNK
from paddlejob.data.progress import Meter, Progress
from paddlejob.data.sources import Source, one_file
from paddlejob.errors import BadInput, PaddleJobError

_COMPRESSED = {
    ".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".lzma": "lzma", ".zst": "zstd", ".lz4": "lz4",
    ".br": "brotli", ".lzo": "lzo", ".sz": "snappy", ".snappy": "snappy", ".z": "compress",
}  # fmt: skip
"""By the end of the name. fsspec can unpack the first four, and some of the others where their library is there."""
_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".tbz2", ".txz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")


def plain(sources: Sequence[Source], scratch: Path, by_lines: bool, tell: Progress) -> list[Source]:
    """The same files, in the same order, all uncompressed (for lines) and all seekable."""
    kinds = [_compression(source.name) if by_lines else None for source in sources]
    names = [_plain_name(source.name) if kind else source.name for source, kind in zip(sources, kinds, strict=True)]
    _refuse_twins(names)
    total = sum(s.size or 0 for s, kind in zip(sources, kinds, strict=True) if kind or not s.seeks)
    meter = Meter(tell, "reading", total or None) if total or not all(s.seeks for s in sources) else None
    return [
        _written(source, name, kind, scratch / f"{number:06}", meter)
        if meter and (kind or not source.seeks)
        else source
        for number, (source, name, kind) in enumerate(zip(sources, names, kinds, strict=True))
    ]


def _written(source: Source, name: str, kind: str | None, directory: Path, meter: Meter) -> Source:
    path = directory / "plain"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        half = directory.parent.parent / "passing" / directory.name
        half.parent.mkdir(exist_ok=True)
        with half.open("wb") as sink:
            for chunk in _unpacked(source, kind, meter):
                sink.write(chunk)
            sink.flush()
            # After a power cut the next run would take a file that is there for a whole one.
            os.fsync(sink.fileno())
        source.refuse_change()
        half.rename(path)
    return replace(one_file(LocalFiles(), str(directory), path.name), name=name)


def _unpacked(source: Source, kind: str | None, meter: Meter) -> Iterator[bytes]:
    if kind is None:
        for chunk in source.chunks():
            meter.add(len(chunk))
            yield chunk
        return
    from fsspec.compression import compr

    raw = io.BufferedReader(_Chunks(source, meter), CHUNK)
    unpacked: IO[bytes] = compr[kind](raw, mode="rb")
    try:
        while chunk := unpacked.read(CHUNK):
            yield chunk
    except PaddleJobError:
        raise
    except Exception as error:
        raise BadInput(f"{source.shown}: is named as {kind} but cannot be unpacked: {error}") from error


class _Chunks(io.RawIOBase):
    """A source as the file that a decompressor reads, counting the compressed bytes."""

    def __init__(self, source: Source, meter: Meter) -> None:
        self._chunks, self._meter, self._rest = source.chunks(), meter, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = next(self._chunks, b"")
            self._meter.add(len(self._rest))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _compression(name: str) -> str | None:
    if name.lower().endswith(_ARCHIVES):
        raise BadInput(f"{name}: is an archive, which has no lines; unpack it first, or use --by files")
    kind = _COMPRESSED.get(PurePosixPath(name).suffix.lower())
    if kind is None:
        return None
    from fsspec.compression import compr

    if kind not in compr:
        raise BadInput(f"{name}: {kind} cannot be unpacked here; unpack it first, or use --by files")
    return kind


def _plain_name(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _refuse_twins(names: Sequence[str]) -> None:
    twins = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twins:
        raise BadInput(f"{twins[0]}: is there both plain and compressed; leave one of the two out")
