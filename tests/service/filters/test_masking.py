"""Personal data of each kind is found and masked in Chinese and English; other numbers stay."""

from __future__ import annotations

import re
from datetime import date
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import luhn
from stdnum.cn import ric

from service.filters import masking
from service.filters.masking import mask
from service.text.clean import clean

# Made up; the check digits are right.
FOUND = {
    "mobile": ("请打13812345678谢谢", "请打[phone]谢谢", {"phone": 1}),
    "mobile in groups": ("138 1234 5678", "[phone]", {"phone": 1}),
    "landline": ("座机010 62345678吧", "座机[phone]吧", {"phone": 1}),
    "American": ("call 212 555 0123 now", "call [phone] now", {"phone": 1}),
    "two numbers": ("13812345678或13912345678", "[phone]或[phone]", {"phone": 2}),
    "identity card": ("身份证11010519491231002X", "身份证[id_card]", {"id_card": 1}),
    "identity card, small x": ("11010519491231002x", "[id_card]", {"id_card": 1}),
    "bank card": ("卡6222021234567890128", "卡[bank_card]", {"bank_card": 1}),
    "bank card in groups": ("4111 1111 1111 1111", "[bank_card]", {"bank_card": 1}),
    "e-mail": ("mail san.zhang@qq.com please", "mail [email] please", {"email": 1}),
    "address": ("寄到上海市黄浦区南京东路100号3栋502室谢谢", "寄到[address]谢谢", {"address": 1}),
    "two addresses": ("我家在建国路88号，公司在朝阳门外大街18号", "我家在[address]，公司在[address]", {"address": 2}),
    "English address": ("sent to 12 Baker Street, Apt 5 today", "sent to [address] today", {"address": 1}),
    "address and number": ("文三路90号电话13812345678", "[address]电话[phone]", {"address": 1, "phone": 1}),
    "full-width, after cleaning": (clean("电话１３８１２３４５６７８"), "电话[phone]", {"phone": 1}),
}


@pytest.mark.parametrize(("text", "masked", "counts"), FOUND.values(), ids=FOUND.keys())
def test_each_kind_is_masked_and_counted(text: str, masked: str, counts: dict[str, int]) -> None:
    """Format 2 names the kind."""
    result = mask(text, "2")
    assert (masked, counts) == (result.text, dict(result.counts))


def test_format_1_keeps_the_length_and_no_digit() -> None:
    """As many marks as there were characters."""
    assert "请打###########谢谢" == mask("请打13812345678谢谢").text


@pytest.mark.parametrize(
    "text",
    [
        "质量很好",
        "2024年11月12日买的，299.00元",
        "型号 6222021234567890123",  # a card's length, a wrong check digit
        "110105194912310021",  # an identity card's length, a wrong check digit
        "订单 20231112000012345",
        "南京路步行街很热闹",
        "这条路3号线可以到",
        "路3号",
        "5 stars for the Road trip",
        "after 24 hours drive it died",
        "x" * 1024,
    ],
)
def test_other_numbers_stay(text: str) -> None:
    """Dates, prices and numbers whose check digit is wrong."""
    result = mask(text)
    assert (text, {}) == (result.text, dict(result.counts))


@given(st.from_regex(r"\A1[3-9][0-9]{9}\Z"), st.sampled_from(["", "电话", "call me ", "，"]))
def test_no_mobile_number_is_left(number: str, before: str) -> None:
    """Whatever stands in front of it."""
    assert number not in mask(before + number + "。").text


@given(st.from_regex(r"\A62[0-9]{13,16}\Z"))
def test_no_card_with_a_right_check_digit_is_left(digits: str) -> None:
    """Any length of UnionPay's."""
    number = digits + luhn.calc_check_digit(digits)
    assert number not in mask(f"卡号{number}，谢谢").text


@given(st.integers(100_000, 999_999), st.dates(date(1900, 1, 1), date(2025, 12, 31)), st.integers(0, 999))
def test_no_identity_card_is_left_whatever_its_county(county: int, born: date, serial: int) -> None:
    """Counties are made and dissolved; an unknown one is no reason to fail, or to keep the number."""
    digits = f"{county}{born:%Y%m%d}" + f"{serial:03d}"
    number = digits + ric.calc_check_digit(digits + "0")
    assert number not in mask(f"身份证{number}。").text


BESIDE = [("共3 ", ""), ("", " 123"), ("12345 ", ""), ("3-", "-5"), ("1 2 ", " 99 1"), ("", " 12345")]


@pytest.mark.parametrize(("before", "behind"), BESIDE)
@given(st.integers(100_000, 999_999), st.dates(date(1900, 1, 1), date(2025, 12, 31)), st.integers(0, 999))
def test_no_identity_card_beside_another_number_is_left(
    before: str, behind: str, county: int, born: date, serial: int
) -> None:
    """Parted from it by a blank or a hyphen, as its own groups may be."""
    digits = f"{county}{born:%Y%m%d}" + f"{serial:03d}"
    number = digits + ric.calc_check_digit(digits + "0")
    assert number not in mask(before + number + behind).text


@pytest.mark.parametrize(("before", "behind"), BESIDE)
@given(st.from_regex(r"\A4[0-9]{14}\Z"))
def test_no_bank_card_beside_another_number_is_left(before: str, behind: str, digits: str) -> None:
    """In one piece or in groups of four."""
    number = digits + luhn.calc_check_digit(digits)
    groups = " ".join(re.findall("....", number))
    assert number not in mask(before + number + behind).text
    assert groups not in mask(before + groups + behind).text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("共3 11010519491231002X", "共3 [id_card]"),
        ("4111 1111 1111 1111 123", "[bank_card] 123"),
        ("12345 4111 1111 1111 1111", "12345 [bank_card]"),
        ("4111 1111 1111 1111x", "[bank_card]x"),
        ("5 4111111111111111-11010519491231002X", "5 [bank_card]-[id_card]"),
    ],
)
def test_the_number_beside_a_card_s_stays(text: str, masked: str) -> None:
    """It is nobody's."""
    assert masked == mask(text, "2").text


@pytest.mark.parametrize("text", ["1" * 1024, "1234567," * 128, "212 555 0123, " * 73, "1(" * 512])
def test_a_text_of_numbers_is_masked_unjudged(text: str) -> None:
    """No run of seven digits is left, and no library is asked about each."""
    assert re.search("[0-9]{7}", mask(text).text) is None


@pytest.mark.parametrize("group", ["12345,", "1,", "1/", "1234/", "१,", "१" * 500, "12, "])
def test_the_library_is_not_asked_to_walk_many_short_numbers(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take up to 50 ms of the event loop; the one long number is masked unjudged."""
    asked = Mock(return_value=[])
    monkeypatch.setattr(masking, "PhoneNumberMatcher", asked)

    text = mask("1234567, " + group * (1000 // len(group))).text

    asked.assert_not_called()
    assert text.startswith("#######")


def test_some_short_numbers_do_not_keep_a_long_one_from_being_judged() -> None:
    """A review with dates and prices: its order number stays, its telephone number does not."""
    text = "2024年11月12日买3件，299.00元，订单 20231112000012345，2024年11月15日到，电话010 62345678"
    assert text.replace("010 62345678", "[phone]") == mask(text, "2").text


def test_a_text_beyond_the_contract_s_length_is_cut() -> None:
    """What was not looked at is not returned."""
    assert "a" * 1024 == mask("a" * 1024 + "13812345678").text


@given(st.text(max_size=200))
def test_nothing_raises(text: str) -> None:
    """Any text at all."""
    mask(text, "2")
