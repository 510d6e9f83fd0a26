"""Tests of inferdeck/tool_install.py, with small stand-ins for apt-get and dpkg-deb on a PATH of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from alerts.promtool import TOOLS
from inferdeck.tool_install import ToolInstallError, ensure_tools, main

# `apt-get download X` leaves X_1_all.deb and writes its arguments down; `dpkg-deb -x X.deb DIR` unpacks two binaries.
APT = """echo "$@" >> {log}
case "$*" in *update*) exit {update};; esac
case "$*" in *Dir::State*) : ;; *) [ {direct} = 0 ] || {{ echo "E: Unable to locate package"; exit {direct}; }};; esac
for last; do :; done; : > "$last"_1_all.deb
"""
DPKG = """mkdir -p "$3/usr/bin"
case "$2" in *alertmanager*) set -- "$3" prometheus-alertmanager amtool;; *) set -- "$3" prometheus promtool;; esac
for name in "$2" "$3"; do printf '#!/bin/sh\\n' > "$1/usr/bin/$name"; chmod 700 "$1/usr/bin/$name"; done
"""


def program(path: Path, body: str) -> None:
    """Write a small executable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o700)


class Machine:
    """A PATH with stand-ins for Debian's programs, and the shell's own."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.log = folder / "apt.log"
        self.target = folder / "tools"
        self.environ = {"PATH": str(self.bin)}
        self.bin.mkdir()
        for name in ("mkdir", "chmod", "sh"):
            (self.bin / name).symlink_to(Path("/bin") / name)

    def debian(self, direct: int = 0, update: int = 0) -> None:
        """Make it a Debian machine whose plain download and own update end with these statuses."""
        program(self.bin / "apt-get", APT.format(log=self.log, direct=direct, update=update))
        program(self.bin / "dpkg-deb", DPKG)

    def calls(self) -> list[str]:
        """Return what apt-get was asked for."""
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without any tool."""
    return Machine(tmp_path)


def test_tools_on_path_are_used_as_they_are(machine: Machine) -> None:
    """With all tools installed nothing is fetched and nothing written."""
    machine.debian()
    for name in TOOLS:
        program(machine.bin / name, "exit 0")

    assert {name: machine.bin / name for name in TOOLS} == ensure_tools(machine.target, machine.environ)
    assert [] == machine.calls()
    assert not machine.target.exists()


def test_missing_tools_are_unpacked_from_debians_packages(machine: Machine) -> None:
    """Both packages are downloaded, unpacked and linked; a second run does nothing."""
    machine.debian()

    found = ensure_tools(machine.target, machine.environ)

    assert {name: machine.target / "bin" / name for name in TOOLS} == found
    assert all(path.resolve().is_file() for path in found.values())
    assert ["-q download prometheus", "-q download prometheus-alertmanager"] == machine.calls()
    assert {"bin", "prometheus", "prometheus-alertmanager"} == {path.name for path in machine.target.iterdir()}
    assert found == ensure_tools(machine.target, machine.environ)
    assert 2 == len(machine.calls())


def test_only_the_missing_package_is_fetched(machine: Machine) -> None:
    """Who has Prometheus installed gets Alertmanager alone."""
    machine.debian()
    for name in ("prometheus", "promtool"):
        program(machine.bin / name, "exit 0")

    found = ensure_tools(machine.target, machine.environ)

    assert ["-q download prometheus-alertmanager"] == machine.calls()
    assert machine.bin / "promtool" == found["promtool"]
    assert machine.target / "bin" / "amtool" == found["amtool"]


def test_missing_package_lists_are_renewed_in_a_folder_of_their_own(machine: Machine) -> None:
    """Without root the machine's lists cannot be renewed; lists of our own can, and are gone afterwards."""
    machine.debian(direct=100)

    ensure_tools(machine.target, machine.environ)

    assert ["-q download prometheus", True, True] == [
        machine.calls()[0],
        machine.calls()[1].endswith("update") and f"Dir::State::lists={machine.target}" in machine.calls()[1],
        machine.calls()[2].endswith("download prometheus"),
    ]
    assert {"bin", "prometheus", "prometheus-alertmanager"} == {path.name for path in machine.target.iterdir()}


def test_a_program_tied_to_debians_folder_reads_the_unpacked_one(machine: Machine, tmp_path: Path) -> None:
    """Debian's Alertmanager reads its templates from a fixed folder; the unpacked one finds them beside itself."""
    machine.debian()
    folder = "$3/usr/share/prometheus/alertmanager"
    body = "cat /usr/share/prometheus/alertmanager/default.tmpl; echo $1"
    program(
        machine.bin / "dpkg-deb",
        f"mkdir -p {folder} $3/usr/bin; echo a template > {folder}/default.tmpl\n"
        + "".join(
            f"printf '#!/bin/sh\\n{body}\\n' > $3/usr/bin/{name}; chmod 700 $3/usr/bin/{name}\n"
            for name in ("prometheus", "promtool", "prometheus-alertmanager", "amtool")
        ),
    )

    found = ensure_tools(machine.target, machine.environ)

    # Started through a link, and from another folder, as a stack may do it.
    link = tmp_path / "link"
    link.symlink_to(found["prometheus-alertmanager"])
    said = subprocess.run([str(link), "two words"], cwd="/", capture_output=True, text=True, check=True).stdout
    assert "a template\ntwo words\n" == said


def test_a_machine_that_is_no_debian_is_told_what_to_install(machine: Machine) -> None:
    """Without apt-get the error names the binaries and where to put them, in one line."""
    with pytest.raises(ToolInstallError) as caught:
        ensure_tools(machine.target, machine.environ)

    said = str(caught.value)
    assert said.startswith("no apt-get here: install Prometheus >= 2.42 and Alertmanager >= 0.25")
    assert "binaries prometheus, promtool, prometheus-alertmanager, amtool" in said
    assert str(machine.target / "bin") in said
    assert 1 == len(said.splitlines())


def test_a_machine_without_network_is_told_what_to_install(machine: Machine) -> None:
    """When neither download nor update works, the error holds apt's last word, and no half tool is left."""
    machine.debian(direct=100, update=100)

    with pytest.raises(ToolInstallError, match=r"^apt-get failed \(no output\): install Prometheus"):
        ensure_tools(machine.target, machine.environ)

    assert [] == list(machine.target.iterdir())


def test_an_interrupted_unpacking_is_done_again(machine: Machine) -> None:
    """A folder or a dead link that an earlier run left does not stand in the way."""
    machine.debian()
    (machine.target / "prometheus" / "half").mkdir(parents=True)
    (machine.target / "bin").mkdir()
    (machine.target / "bin" / "promtool").symlink_to("nowhere")

    assert (machine.target / "bin" / "promtool") == ensure_tools(machine.target, machine.environ)["promtool"]


def test_the_command_ends_with_two_and_one_line(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m inferdeck.tool_install FOLDER` cannot run: status 2, one line on stderr."""
    monkeypatch.setenv("PATH", str(machine.bin))

    assert 2 == main([str(machine.target)])

    shown = capsys.readouterr()
    assert "" == shown.out
    assert shown.err.startswith("inferdeck: no apt-get here")
    assert 1 == len(shown.err.splitlines())
