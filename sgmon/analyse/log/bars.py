"""tqdm bars: which one, how far.

Written to stderr without prefix or rank, ``\\r`` before each frame and nothing after it, so the newest frame is an
unterminated tail. The description comes only with the second frame in many versions of servers, in some never.
"""

from __future__ import annotations

from msgspec import Struct

from sgmon.patterns import regex

#: One of these is in every frame of a bar.
KEYS = ("% Completed |", "%|")

_FRAME = regex(
    r"(?P<desc>(?:\[[A-Za-z]{1,40}\])?(?:[^\]\r\n|]|(?<=\d)\](?=\))){0,120}?)"  # "(W=torch.Size([4096, 7168]))"
    r":?\s*(?P<percent>\d{1,3})%\s*(?:Completed )?\|(?:[^|]{0,200}?\|)? ?"
    r"(?P<done>\d{1,12}(?:\.\d{1,6})?[kMGT]?)/(?P<total>\d{1,12}(?:\.\d{1,6})?[kMGT]?)(?=[ \[\r\n]|$)"
    r"(?P<rate> \[[^\]\r\n]{0,60}\]?)?"
)
_SCALE = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Frame(Struct, frozen=True):
    """One frame. name "": an anonymous bar, or one that sgmon does not know."""

    name: str
    done: int
    total: int
    text: str
    described: bool


def frames(text: str, names: tuple[tuple[str, str], ...]) -> list[Frame]:
    """The frames in ``text``, in order. names: see ``LogRules.bars``."""
    if "%" not in text:
        return []
    found: list[Frame] = []
    at = 0
    while True:
        near = _next_key(text, at)
        if near < 0:
            return found
        begin = max(at, near - 160)
        match = _FRAME.search(text, begin)
        if not match or match.start() > near:
            at = near + 2
            continue
        desc = match["desc"].strip()
        word, name = next(((word, name) for word, name in names if word in desc), ("", ""))
        shown = desc[desc.find(word) :].replace("]: ", " ") if word else ""
        found.append(
            Frame(
                name=name,
                done=_count(match["done"]),
                total=_count(match["total"]),
                text=f"{shown} {match[0][match.start('percent') - match.start() :]}".strip(),
                described=bool(desc),
            )
        )
        at = max(match.end(), near + 2)


def _next_key(text: str, at: int) -> int:
    positions = [p for p in (text.find(key, at) for key in KEYS) if p >= 0]
    return min(positions) if positions else -1


def _count(text: str) -> int:
    scale = _SCALE.get(text[-1])
    return int(float(text[:-1]) * scale) if scale else int(float(text))
