"""Jars from Maven repositories, fetched by Ivy: Spark brings it along, so that is all it takes."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyspark

from ids.spark.session import ensure_java

__all__ = ["SPARK_JARS", "NoNetwork", "NotFound", "fetched", "java"]

SPARK_JARS = Path(pyspark.__file__).parent / "jars"

_ASKED = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="ids" module="tests"/>
  <dependencies>
    {}
  </dependencies>
</ivy-module>
"""


class NoNetwork(Exception):
    """No repository of jars can be reached, and the jars were never fetched before."""


class NotFound(Exception):
    """The repository answers, and does not have what was asked for."""


def java() -> list[str]:
    """The command of Java for a small program."""
    return [str(ensure_java() / "bin" / "java"), "-Xmx256m"]


def fetched(*packages: str, without: Iterable[str] = (), instead: Iterable[str] = ()) -> list[str]:
    """The jars of ``packages`` and of all they depend on.

    A package is ``group:artifact:version``, or ``group:artifact:version:classifier`` for the one
    jar of that classifier alone. Those in ``instead`` replace any other version of theirs;
    ``without`` has ``group:artifact`` to leave out, where ``*`` is any artifact.
    """
    elements = [
        *map(_dependency, packages),
        *(_element("exclude", org=group, module=name) for group, name in map(_parts, without)),
        *(
            _element("override", org=group, module=name, rev=version)
            for group, name, version in map(_parts, instead)
        ),
    ]
    (ivy,) = SPARK_JARS.glob("ivy-*.jar")
    with tempfile.TemporaryDirectory() as folder:
        asked, paths = Path(folder, "ivy.xml"), Path(folder, "paths")
        asked.write_text(_ASKED.format("\n    ".join(elements)), encoding="utf-8")
        options = ["-ivy", str(asked), "-confs", "default", "-cachepath", str(paths), "-warn"]
        command = [*java(), "-jar", str(ivy), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return paths.read_text(encoding="utf-8").strip().split(os.pathsep)
    said = done.stdout + done.stderr
    if unreachable := re.search(r"Server access error at .*", said):
        raise NoNetwork(unreachable.group())
    raise NotFound(", ".join(re.findall(r":: (\S+): not found", said)) or said[-2000:])


def _parts(package: str) -> list[str]:
    return package.split(":")


def _dependency(package: str) -> str:
    group, name, version, *classifiers = _parts(package)
    place = {"org": group, "name": name, "rev": version, "conf": "default->default"}
    if not classifiers:
        return _element("dependency", **place)
    (classifier,) = classifiers
    one = _element("artifact", name=name, type="jar", **{"m:classifier": classifier})
    return _element("dependency", one, **place, transitive="false")


def _element(kind: str, inside: str = "", **attributes: str) -> str:
    written = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
    return f"<{kind} {written}>{inside}</{kind}>"
