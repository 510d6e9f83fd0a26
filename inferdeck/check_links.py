"""Whether links between the Markdown pages lead anywhere: to a file of this checkout, and to a heading in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from inferdeck.checks import Check

__all__ = ["check_links", "dead_links", "pages_of"]

# Where pages for readers lie; what set-up or a build makes beside them is not ours to judge.
_FOLDERS = ("alerts", "dashboards", "deploy", "docker", "docs", "runbooks", "tests")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|!\[[^\]]*\]\(\s*([^)\s]+)")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")


def check_links(root: Path) -> Iterator[Check]:
    """Yield one finding for each dead link, or that there is none.

    Args:
        root: The checkout.
    """
    pages = pages_of(root)
    dead = [what for page in pages for what in dead_links(page, root)]
    if not dead:
        yield Check("links: pages", "ok", f"{len(pages)} pages, every link to a file and heading that is there")
    for what in dead:
        yield Check("links: pages", "fail", what, "mend the link, or write what it leads to")


def pages_of(root: Path) -> list[Path]:
    """Return the Markdown pages of a checkout, in alphabetical order."""
    found = set(root.glob("*.md"))
    for folder in _FOLDERS:
        found |= set((root / folder).rglob("*.md"))
    return sorted(page for page in found if not any(part.startswith(".") for part in page.relative_to(root).parts))


def dead_links(page: Path, root: Path) -> list[str]:
    """Return the links of a page that lead nowhere, each with file, line and what is missing.

    Args:
        page: The page.
        root: The checkout; a link out of it is dead for everybody else.
    """
    dead = []
    for number, line in _prose(page):
        for match in _LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            target = match[1] or match[2]
            if _ELSEWHERE.match(target):
                continue
            name, _, heading = target.partition("#")
            there = (page.parent / name).resolve() if name else page.resolve()
            if not there.is_relative_to(root.resolve()) or not there.exists():
                dead.append(f"{page.relative_to(root)}:{number}: {target} is not there")
            elif heading and there.suffix == ".md" and heading not in _headings(there):
                dead.append(f"{page.relative_to(root)}:{number}: {target}: the page has no such heading")
    return dead


def _prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines outside of code."""
    fence = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        elif not fence:
            yield number, line


def _headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    anchors: dict[str, int] = {}
    found = set()
    for _, line in _prose(page):
        if match := re.match(r"#{1,6} +(.+?) *#*$", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower()
            anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            count = anchors.get(anchor, 0)
            anchors[anchor] = count + 1
            found.add(f"{anchor}-{count}" if count else anchor)
    return found
