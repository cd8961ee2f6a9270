"""Makes sources seekable: compressed files and web pages are first written, uncompressed, to scratch space."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO

from paddlejob.data.drivers.discovery import one_file
from paddlejob.data.drivers.errors import describe
from paddlejob.data.drivers.local_files import LocalFiles
from paddlejob.data.drivers.source import CHUNK, Source
from paddlejob.data.progress import Meter, Progress
from paddlejob.errors import BadInput, PaddleJobError

_COMPRESSED = {
    ".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".lzma": "lzma", ".zst": "zstd", ".lz4": "lz4",
    ".br": "brotli", ".lzo": "lzo", ".sz": "snappy", ".snappy": "snappy", ".z": "compress",
}  # fmt: skip
"""By file extension. fsspec unpacks the first four itself, and some of the others if their library is installed."""
_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".tbz2", ".txz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")


def make_seekable(sources: Sequence[Source], scratch: Path, by_lines: bool, progress: Progress) -> list[Source]:
    """Return the same files in the same order, all of them seekable and, for lines, uncompressed."""
    kinds = [_compression(source.name) if by_lines else None for source in sources]
    names = [_unpacked_name(source.name) if kind else source.name for source, kind in zip(sources, kinds, strict=True)]
    _check_unique(names)
    total = sum(s.size or 0 for s, kind in zip(sources, kinds, strict=True) if kind or not s.is_seekable)
    meter = Meter(progress, "reading", total or None) if total or not all(s.is_seekable for s in sources) else None
    return [
        _unpack(source, name, kind, scratch / f"{number:06}", meter)
        if meter and (kind or not source.is_seekable)
        else source
        for number, (source, name, kind) in enumerate(zip(sources, names, kinds, strict=True))
    ]


def _unpack(source: Source, name: str, kind: str | None, directory: Path, meter: Meter) -> Source:
    path = directory / "plain"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        partial = directory.parent.parent / "partial" / directory.name
        partial.parent.mkdir(exist_ok=True)
        with partial.open("wb") as sink:
            for chunk in _unpacked_chunks(source, kind, meter):
                sink.write(chunk)
            sink.flush()
            # The next run assumes that a file under this name is complete, even after a power cut.
            os.fsync(sink.fileno())
        source.check_unchanged()
        partial.rename(path)
    return replace(one_file(LocalFiles(), str(directory), path.name), name=name)


def _unpacked_chunks(source: Source, kind: str | None, meter: Meter) -> Iterator[bytes]:
    if kind is None:
        for chunk in source.chunks():
            meter.add(len(chunk))
            yield chunk
        return
    from fsspec.compression import compr

    raw = io.BufferedReader(_SourceReader(source, meter), CHUNK)
    unpacked: IO[bytes] = compr[kind](raw, mode="rb")
    try:
        while chunk := unpacked.read(CHUNK):
            yield chunk
    except PaddleJobError:
        raise
    except Exception as error:
        raise BadInput(
            f"{source.shown} is not valid {kind} data: {describe(error)}; repair or rename the file, or use --by files"
        ) from error


class _SourceReader(io.RawIOBase):
    """A source as the file that a decompressor reads; counts the compressed bytes."""

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
        raise BadInput(f"{name} is an archive, which has no lines; unpack it first, or use --by files")
    kind = _COMPRESSED.get(PurePosixPath(name).suffix.lower())
    if kind is None:
        return None
    from fsspec.compression import compr

    if kind not in compr:
        raise BadInput(f"{name}: {kind} files cannot be unpacked here; unpack it first, or use --by files")
    return kind


def _unpacked_name(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


def _check_unique(names: Sequence[str]) -> None:
    duplicates = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if duplicates:
        raise BadInput(f"{duplicates[0]}: exists both plain and compressed; leave one of them out")
