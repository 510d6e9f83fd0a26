"""Where Kafka cannot be had, that is one sentence, and what came is held to what was expected."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from inferdeck.stack import kafka
from inferdeck.stack.kafka import PROJECT, KafkaMissing, ensure_kafka


def project(folder: Path, content: bytes = b"jar") -> Path:
    """Return a project of one jar."""
    folder.mkdir()
    (folder / "pom.xml").write_text("<project/>")
    (folder / "jars.sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  one.jar\n")
    return folder


def program(folder: Path, name: str, script: str) -> None:
    """Write a program."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


# Maven, as far as it is asked for: writes one jar into the folder that its last argument names.
MAVEN = 'for last; do :; done; mkdir -p "${last#-DoutputDirectory=}"; printf jar > "${last#-DoutputDirectory=}/one.jar"'


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have nothing on PATH but what the test puts there, and a shell."""
    folder = tmp_path / "bin"
    program(folder, "java", "exit 0")
    for name in ("sh", "mkdir"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_it_is_fetched_once(bin_: Path, tmp_path: Path) -> None:
    """Into a folder named by what was expected, so that another version is another folder."""
    program(bin_, "mvn", MAVEN)
    first = ensure_kafka(tmp_path / "tools", project(tmp_path / "p"))
    (bin_ / "mvn").unlink()

    assert b"jar" == (first / "one.jar").read_bytes()
    assert first == ensure_kafka(tmp_path / "tools", tmp_path / "p")


def test_another_jar_than_expected_is_refused_and_not_kept(bin_: Path, tmp_path: Path) -> None:
    """Whoever sent it."""
    program(bin_, "mvn", MAVEN)
    with pytest.raises(KafkaMissing, match=r"not what was expected: one\.jar"):
        ensure_kafka(tmp_path / "tools", project(tmp_path / "p", b"other"))

    assert not list((tmp_path / "tools").rglob("*.jar"))


def test_what_is_missing_is_named(bin_: Path, tmp_path: Path) -> None:
    """Maven, its registry, Java, the checkout."""
    made = project(tmp_path / "p")
    with pytest.raises(KafkaMissing, match="no Maven"):
        ensure_kafka(tmp_path / "tools", made)
    program(bin_, "mvn", "echo '[ERROR] no such artifact'; exit 1")
    with pytest.raises(KafkaMissing, match="no such artifact"):
        ensure_kafka(tmp_path / "tools", made)
    with pytest.raises(KafkaMissing, match="from a checkout"):
        ensure_kafka(tmp_path / "tools", tmp_path / "nowhere")
    (bin_ / "java").unlink()
    with pytest.raises(KafkaMissing, match="no Java"):
        ensure_kafka(tmp_path / "tools", made)


def test_the_shipped_list_names_the_broker_and_the_version_of_the_project() -> None:
    """They are changed together."""
    names = set(kafka._digests(PROJECT / "jars.sha256"))
    version = (
        (PROJECT / "pom.xml").read_text(encoding="utf-8").split("kafka_2.13</artifactId>")[1].split("<version>")[1]
    )

    assert f"kafka_2.13-{version.split('<')[0]}.jar" in names
