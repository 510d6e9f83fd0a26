"""Who goes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.scheduler.assemble import priority_rule
from service.scheduler.priority import KeyUnusable, PriorityRule, priority_token, read_key
from service.settings import SettingsError, load_settings

KEY = b"0123456789abcdef"


def test_ids_and_prefixes_name_vips() -> None:
    """By default nobody is one."""
    rule = PriorityRule({"AB00000001"}, ("VI",))
    assert [rule.get_priority(name, []) for name in ("AB00000001", "VI12345678", "AB00000002")] == [True, True, False]
    assert not PriorityRule().get_priority("AB00000001", [])


def test_header_needs_the_key_and_fits_one_product() -> None:
    """A token is worth nothing for another product, without a key, twice, or made with another key."""
    rule = PriorityRule(key=KEY)
    header = (b"x-priority-token", priority_token(KEY, "AB00000001").encode())
    other = (b"x-priority-token", priority_token(KEY + b"!", "AB00000001").encode())
    assert rule.get_priority("AB00000001", [header])
    assert not rule.get_priority("AB00000002", [header])
    assert not rule.get_priority("AB00000001", [header, header])
    assert not rule.get_priority("AB00000001", [other])
    assert not rule.get_priority("AB00000001", [(b"x-priority-token", b"\xff")])
    assert not PriorityRule().get_priority("AB00000001", [header])


def test_key_must_be_its_owners_alone(tmp_path: Path) -> None:
    """A key that others can read, that is short or missing stops the start with the mend, without its content."""
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    path.chmod(0o644)
    with pytest.raises(KeyUnusable, match="chmod 600"):
        read_key(path)
    path.chmod(0o600)
    assert read_key(path) == KEY
    path.write_bytes(b"short")
    with pytest.raises(KeyUnusable, match="fewer than 16 bytes") as told:
        read_key(path)
    assert "short" not in str(told.value)
    with pytest.raises(SettingsError, match=r"VIP_KEY_FILE.*No such file"):
        priority_rule(load_settings(vip_key_file=tmp_path / "none"))


def test_settings_name_vips_parted_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's form is the one of the other lists."""
    monkeypatch.setenv("INFERDECK_SERVICE_VIP_PRODUCT_PREFIXES", "VI,VX")
    rule = priority_rule(load_settings())
    assert [rule.get_priority(name, []) for name in ("VI12345678", "VX12345678", "AB12345678")] == [True, True, False]
