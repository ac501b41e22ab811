"""Checkpoint files, which are written atomically and verified by a checksum."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from ids.errors import CheckpointError

VERSION = 1
_MAGIC = b"IDS-CHECKPOINT\n"
_HEADER = len(_MAGIC) + 4 + 8 + 32

Arrays = Mapping[str, npt.NDArray[np.generic]]


def save(path: str | Path, facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write facts (JSON) and arrays to a temporary file, and rename it once it is complete."""
    target = Path(path)
    buffer = io.BytesIO()
    packed = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, **{"facts": packed, **arrays})
    payload = buffer.getvalue()
    header = _MAGIC + VERSION.to_bytes(4, "big") + len(payload).to_bytes(8, "big")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(header + hashlib.sha256(header + payload).digest() + payload)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
        _sync_directory(target.parent)
    except OSError as error:
        raise CheckpointError(f"cannot write checkpoint {target}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[np.generic]]]:
    """Return the facts and arrays of a checkpoint; raise CheckpointError if it is damaged."""
    source = Path(path)
    try:
        content = source.read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot read checkpoint {source}: {error.strerror}") from None
    if not content.startswith(_MAGIC):
        raise CheckpointError(f"{source} is not an IDS checkpoint")
    if len(content) < _HEADER:
        raise CheckpointError(f"checkpoint {source} is truncated; restore an earlier one")
    version = int.from_bytes(content[len(_MAGIC) : len(_MAGIC) + 4], "big")
    if version != VERSION:
        raise CheckpointError(
            f"checkpoint {source} has version {version}, this IDS reads version {VERSION}; "
            "read it with the IDS that wrote it"
        )
    length = int.from_bytes(content[len(_MAGIC) + 4 : len(_MAGIC) + 12], "big")
    payload = content[_HEADER:]
    if len(payload) != length:
        raise CheckpointError(f"checkpoint {source} is truncated; restore an earlier one")
    header = content[: len(_MAGIC) + 12]
    if hashlib.sha256(header + payload).digest() != content[_HEADER - 32 : _HEADER]:
        raise CheckpointError(
            f"checkpoint {source} was altered: its checksum differs; restore an earlier one"
        )
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (BadZipFile, ValueError) as error:
        raise CheckpointError(f"checkpoint {source} cannot be read: {error}") from None
    return json.loads(arrays.pop("facts").tobytes()), arrays


def _sync_directory(directory: Path) -> None:
    """Flush the directory to disk, so that the rename survives a crash."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
