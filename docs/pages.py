"""What the makers of pages share: a page's generated parts stand between two comments that name them."""

import re
from pathlib import Path


def replace(page: Path, name: str, text: str) -> None:
    """Put the text between `<!-- name: begin -->` and `<!-- name: end -->` of a page."""
    pattern = re.compile(rf"(<!-- {name}: begin.*?-->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    old = page.read_text()
    if not pattern.search(old):
        raise ValueError(f"{page.name} has no part <!-- {name}: begin --> ... <!-- {name}: end -->")
    page.write_text(pattern.sub(lambda part: part[1] + text.rstrip() + "\n" + part[2], old))


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
