"""Tests of inferdeck/check_links.py: a link that leads nowhere is found, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferdeck.check_links import check_links, dead_links, pages_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two pages that lead to each other, and a picture."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/shape.png").write_bytes(b"")
    (tmp_path / "README.md").write_text(
        "# Head\n\nSee [the rest](docs/rest.md#what-is-there-2), [gone](https://a.example/x), ![](docs/shape.png).\n"
    )
    (tmp_path / "docs/rest.md").write_text("# What is there? `2`\n\nBack to [the head](../README.md#head).\n")
    return tmp_path


def test_links_that_lead_somewhere_are_well(checkout: Path) -> None:
    """Files, headings with signs in them, pictures, and addresses elsewhere, which are nobody's to ask here."""
    (found,) = check_links(checkout)

    assert ("ok", "2 pages, every link to a file and heading that is there") == (found.state, found.detail)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("docs/rest.md#", "docs/rst.md#", "README.md:3: docs/rst.md#what-is-there-2 is not there"),
        ("what-is-there-2", "what-was", "README.md:3: docs/rest.md#what-was: the page has no such heading"),
        ("docs/shape.png", "docs/shap.png", "README.md:3: docs/shap.png is not there"),
        ("docs/shape.png", "../outside.png", "README.md:3: ../outside.png is not there"),
    ],
)
def test_a_dead_link_fails_with_file_and_line(checkout: Path, old: str, new: str, said: str) -> None:
    """A missing file, a missing heading, a missing picture, and a file out of the checkout."""
    (checkout.parent / "outside.png").write_bytes(b"")
    page = checkout / "README.md"
    page.write_text(page.read_text().replace(old, new))

    (found,) = check_links(checkout)

    assert ("fail", said) == (found.state, found.detail)


def test_what_stands_in_code_is_no_link(checkout: Path) -> None:
    """Between backquotes and in fences."""
    page = checkout / "README.md"
    page.write_text("`[a](gone.md)`\n\n```text\n[b](gone.md)\n```\n")

    assert [] == dead_links(page, checkout)


def test_two_headings_of_one_name_are_told_apart(checkout: Path) -> None:
    """The second has a number behind it."""
    (checkout / "docs/rest.md").write_text("# Same\n\n## Same\n\n[second](#same-1) [third](#same-2)\n")

    assert ["docs/rest.md:5: #same-2: the page has no such heading"] == dead_links(checkout / "docs/rest.md", checkout)


def test_the_pages_of_this_checkout_lead_somewhere() -> None:
    """README, docs, runbooks, and the tables that are generated."""
    assert [] == [what for page in pages_of(ROOT) for what in dead_links(page, ROOT)]
