"""A bundle is read back as it was written, and a hostile or damaged one is refused in one line."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from pathlib import Path

import pytest

from inferdeck.bundle import container
from inferdeck.bundle.container import FORMAT, pack, unpack
from inferdeck.errors import CannotRun


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder to pack."""
    folder = tmp_path / "source"
    (folder / "rings").mkdir(parents=True)
    (folder / "report.json").write_text("{}")
    (folder / "rings" / "a.ring").write_bytes(bytes(3_000_000) + b"x")
    return folder


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], listed: dict[str, bytes] | None = None) -> Path:
    """Write a tar.gz of these members behind a manifest that lists *listed*."""
    import hashlib

    entries = [
        {"name": name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        for name, body in (listed or {}).items()
    ]
    manifest = json.dumps({"format": FORMAT, "members": entries}).encode()
    with tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT) as archive:
        for info, body in [(plain("manifest.json"), manifest), *members]:
            if info.isreg():
                info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return path


def plain(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """Return a member's head."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def refused(path: Path, folder: Path) -> str:
    """Return the line with which a file is refused, and see that it is one."""
    folder.mkdir(exist_ok=True)
    with pytest.raises(CannotRun) as told:
        unpack(path, folder)
    assert 1 == len(str(told.value).splitlines())
    return str(told.value)


def test_a_bundle_is_read_back_as_written(source: Path, tmp_path: Path) -> None:
    """Files, manifest and checksums; private; the same again when packed again."""
    target = tmp_path / "b.tar.gz"
    written = pack(source, target, {"report": "r"})
    folder = tmp_path / "out"
    folder.mkdir()

    manifest = unpack(target, folder)

    assert written == manifest
    assert ["report.json", "rings/a.ring"] == [member["name"] for member in manifest["members"]]
    assert (source / "rings" / "a.ring").read_bytes() == (folder / "rings" / "a.ring").read_bytes()
    assert [0o600, 0o600] == [path.stat().st_mode & 0o777 for path in (target, folder / "rings" / "a.ring")]
    assert [target] == list(tmp_path.glob("*.tar.gz"))


@pytest.mark.parametrize(
    ("member", "word"),
    [
        (plain("../outside"), "a member is called"),
        (plain("/etc/passwd"), "a member is called"),
        (plain("a/../../b"), "a member is called"),
        (plain(".hidden"), "a member is called"),
        (plain("a\nb"), "a member is called"),
        (plain("manifest.json"), "a member is called"),
        (plain("link", tarfile.SYMTYPE, "/etc/passwd"), "no plain file"),
        (plain("link", tarfile.LNKTYPE, "manifest.json"), "no plain file"),
        (plain("device", tarfile.CHRTYPE), "no plain file"),
        (plain("folder", tarfile.DIRTYPE), "no plain file"),
        (plain("x" * 200), "no plain file"),
    ],
)
def test_a_hostile_member_is_refused(member: tarfile.TarInfo, word: str, tmp_path: Path) -> None:
    """Paths that lead out, links, devices, long-name headers: nothing is written outside the folder."""
    path = tar(tmp_path / "b.tar.gz", (member, b"evil"))

    assert word in refused(path, tmp_path / "out")
    assert not (tmp_path / "outside").exists()


def test_what_the_manifest_does_not_say_is_refused(tmp_path: Path) -> None:
    """A wrong checksum, a member too many, and one too few."""
    for name, members, listed in (
        ("hash", [(plain("a"), b"x")], {"a": b"y"}),
        ("more", [(plain("a"), b"x")], {}),
        ("less", [], {"a": b"x"}),
    ):
        path = tar(tmp_path / f"{name}.tar.gz", *members, listed=listed)
        assert "not what its manifest says: a" in refused(path, tmp_path / name)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """A header that promises a terabyte is refused at the header; so are too many members."""
    info = tarfile.TarInfo("a")
    info.size = 1 << 40
    manifest = tarfile.TarInfo("manifest.json")
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(manifest.tobuf() + info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)))
    many = tar(tmp_path / "many.tar.gz", *((plain(f"m{number}"), b"") for number in range(300)))

    assert "more than" in refused(tmp_path / "b.tar.gz", tmp_path / "out")
    assert "more than" in refused(many, tmp_path / "out2")
    assert [] == [path for path in (tmp_path / "out").iterdir() if path.stat().st_size]


def test_a_file_that_is_too_large_is_not_opened(tmp_path: Path) -> None:
    """Packed size is bounded as well; a sparse file costs nothing here."""
    path = tmp_path / "b.tar.gz"
    with path.open("wb") as file:
        file.truncate(container.MOST_PACKED_BYTES + 1)

    assert "larger than" in refused(path, tmp_path / "out")


def test_whatever_is_cut_or_damaged_is_refused(source: Path, tmp_path: Path) -> None:
    """At any place: never a traceback, never a bundle that is half true."""
    target = tmp_path / "b.tar.gz"
    (source / "rings" / "a.ring").write_bytes(random.Random(1).randbytes(5000))
    pack(source, target, {})
    whole = target.read_bytes()
    draw = random.Random(2)
    for number in range(60):
        at = draw.randrange(len(whole))
        flipped = whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :]
        for kind, raw in (("cut", whole[:at]), ("flipped", flipped)):
            target.write_bytes(raw)
            folder = tmp_path / f"{kind}{number}"
            folder.mkdir()
            # some bits of gzip's own header (its time, its system) mean nothing
            if kind == "flipped" and at < 10:
                continue
            assert refused(target, folder)


@pytest.mark.parametrize("raw", [b"", b"no gzip", gzip.compress(b""), gzip.compress(bytes(512))])
def test_what_is_no_bundle_is_refused(raw: bytes, tmp_path: Path) -> None:
    """Empty, foreign, or without a manifest."""
    (tmp_path / "b.tar.gz").write_bytes(raw)

    assert refused(tmp_path / "b.tar.gz", tmp_path / "out")


def test_something_behind_the_end_is_refused(source: Path, tmp_path: Path) -> None:
    """Nobody would have checked it."""
    target = tmp_path / "b.tar.gz"
    pack(source, target, {})
    target.write_bytes(target.read_bytes() + gzip.compress(b"more"))

    assert "behind its end" in refused(target, tmp_path / "out")


def test_a_bundle_that_could_not_be_read_back_is_not_made(tmp_path: Path) -> None:
    """Too many files; nothing is left behind."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(container.MOST_MEMBERS):
        (folder / f"f{number}").touch()

    with pytest.raises(CannotRun, match="take a shorter time"):
        pack(folder, tmp_path / "b.tar.gz", {})
    assert [folder] == list(tmp_path.iterdir())
