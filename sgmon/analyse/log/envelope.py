"""What other programs put around a line of the server: learned from the text, not listed.

A record of the server's own inside a line tells what stands before it: a container's name, a time, a pid, a quotation
mark, a JSON object. Its words are taken as examples, its structure as a rule (``shape``), so that lines without a
record (tracebacks, bars) are opened too. Nothing is learned from a prefix that reads like prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

from sgmon.analyse.log.catalogue import version_key
from sgmon.analyse.log.envelope_shapes import (
    _STRONG,
    Shape,
    has_time,
    is_strong,
    shape_of,
    unquoted,
)
from sgmon.analyse.log.envelope_writers import container, number_before, read_prefix, without_level
from sgmon.analyse.log.json_lines import Path, decode, message, value_at
from sgmon.analyse.log.prefix import epoch, origin
from sgmon.analyse.log.records import is_request
from sgmon.analyse.log.shapes import announced
from sgmon.analyse.log.stamps import stamp
from sgmon.patterns import regex
from sgmon.servers.family import LogRules

#: Longest prefix that is learned, most shapes that are kept, longest line that is looked at.
LONGEST, KEPT, LOOK = 400, 24, 65_536
#: What only a terminal obeys: colours, also without their escape, as browsers copy them, or with it spelt, as syslog
#: and cat write it; the cursor; titles.
COLOUR = regex(
    r"(?=[\x1b#^\\\[])"  # what it can begin with; at any other character the search goes on at once
    r"(?:(?:\x1b|#033|\^\[|\\x1b|\\033|\\u001b)?\[\d{1,3}(?:;\d{1,3})*m|\x1b\[[\d;?]*[A-Za-z]"
    r"|\x1b\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\))"
)
BARE_COLOUR = "[0m"
_REPEATED = regex(r"\s*\[repeated \d+x across \w+\].*$")
_TEXT = regex(r"%\||% Completed \||\bNCCL (?:INFO|WARN)\b")  # a bar or a line of NCCL, to which a record is glued
_EDGES = ("|", "│")
_PARTIAL = regex(r"\bstd(?:out|err) P $")  # CRI: the line goes on in the next entry
#: a frame of a traceback behind something else, and a frame alone
_FRAME = regex(r'(?P<prefix>\S.{0,400}?\s?)  File "[^"]+", line \d+,? in \S')
_FRAME_ALONE = regex(r'\s*File "[^"]+", line \d+,? in \S')
_SAYS_ERROR = regex(r"Traceback|Error|Exception|File \"")


class Opened(Struct):
    """A line without what was around it. number: of its physical line. source: who wrote it; "": one writer.

    t: seconds since the epoch that the envelope gives, as it stands there. partial: it goes on in the next entry.
    """

    number: int
    text: str
    source: str = ""
    t: float | None = None
    partial: bool = False


class Envelope(Struct):
    """What was learned so far. ``learn`` looks at lines in order; ``open`` takes the envelope off."""

    rules: LogRules
    shapes: list[Shape] = field(default_factory=list)
    inner: list[Shape] = field(default_factory=list)  # around the text inside of a JSON value
    json: Path | None = None
    one_writer: bool = False  # what differs from line to line names nobody
    numbers_name: bool = False  # a number before each line is a task's (srun -l), not the line's (grep -n)
    _seen: dict[str, int] = field(default_factory=dict)
    _last: int = -1

    @property
    def plain(self) -> bool:
        """Whether nothing was learned: lines stand there as the server wrote them."""
        return not self.shapes and self.json is None

    def may_teach(self, text: str) -> bool:
        """Whether something can be learned from a chunk of lines; cheap, and right to say yes too often."""
        if not self.plain or text.startswith(("20", "{")) or "\n20" in text or "\n{" in text:
            return True
        if '  File "' in text and text.count('  File "') > text.count('\n  File "') + text.startswith('  File "'):
            return True
        hint = self.rules.dated
        if not hint:
            return any(self.rules.inner.search(line, 1) for line in text.split("\n") if line)
        return text.count(hint) > text.count("\n" + hint) + text.startswith(hint)

    def learn(self, lines: list[str], early: bool = True) -> int | None:
        """The index of the first of ``lines`` that teaches something new, which is then known; None: none does.

        early: near the beginning; later only lines that no shape fits are looked at.
        """
        for index, line in enumerate(lines):
            if len(line) > 8 and (early or self._is_new(line)) and self._teaches(line[:LOOK]):
                return index
        return None

    def _is_new(self, line: str) -> bool:
        if self.json is not None or self.rules.dated not in line[1:]:
            return False
        return not any(shape.pattern.match(line) for shape in self.shapes)

    def _teaches(self, line: str) -> bool:
        if self.json is None and "{" in line and line.rstrip().endswith("}") and self._learn_json(line):
            return True
        head, text = self._outside(line)
        known = self.inner if head else self.shapes
        if self._learn_prefix(text, known):
            return True
        return not self.numbers_name and self._counts_back(text, known)

    def _counts_back(self, line: str, known: list[Shape]) -> bool:
        """Whether the number before this line is not larger than the one before the last: no line number then."""
        match = next((match for shape in known if (match := shape.pattern.match(line))), None)
        number = number_before(match[0]) if match else None
        if number is None:
            return False
        last, self._last = self._last, int(number[1])
        self.numbers_name = last >= int(number[1])
        return self.numbers_name

    def _outside(self, line: str) -> tuple[bool, str]:
        """Whether the text stands in a known JSON value, and the first line of that text."""
        if self.json is not None:
            brace = line.find("{")
            found = decode(line[brace:]) if brace >= 0 else None
            text = value_at(found, self.json) if found is not None else None
            if text is not None:
                return True, text.split("\n", 1)[0]
        return False, line

    def _learn_json(self, line: str) -> bool:
        brace = line.find("{")
        found = decode(line[brace:])
        if found is None:
            return False
        path = message(found, self._speaks)
        if path is None:
            return False
        self.json = path
        if brace and not any(shape.pattern.match(line) for shape in self.shapes):
            self._keep(line[:brace], self.shapes, sure=True)
        return True

    def _speaks(self, text: str) -> bool:
        """Whether a text is the server's own."""
        if _FRAME_ALONE.match(text):
            return True
        return self.rules.inner.search(text) is not None or any(
            rule.group == "milestone" and not rule.weak and rule.search(text) for rule in announced(self.rules, text)
        )

    def _learn_prefix(self, line: str, known: list[Shape]) -> bool:
        begin = self.rules.record.match(line)
        at = self._record_at(line, begin)
        if at is None:
            at = (self._message_at(line) if begin is None else None) or self._frame_at(line)
        if not at or at > LONGEST:
            return False
        prefix = line[:at]
        if any((match := shape.pattern.match(line)) and match.end() >= at for shape in known):
            return False
        return self._keep(prefix, known)

    def _keep(self, prefix: str, known: list[Shape], sure: bool = False) -> bool:
        if len(known) >= KEPT or "\r" in prefix or _TEXT.search(prefix):
            return False
        made = shape_of(prefix)
        if made is None:
            return False
        if not (sure or is_strong(prefix)):
            self._seen[made.source] = self._seen.get(made.source, 0) + 1
            if self._seen[made.source] < 2:
                return False
        known.append(made)
        known.sort(key=lambda shape: -len(shape.source))  # of two that fit, the one that takes more
        return True

    def _record_at(self, line: str, begin: re.Match[str] | None) -> int | None:
        """Where the server's own record begins, behind an envelope; None: there is none, or it is glued to text.
        begin: the record with which the line begins."""
        end = begin.end() if begin else 0
        if is_request(line, end, self.rules):
            return None
        at: int | None = None
        for match in self.rules.inner.finditer(line, end):
            between = line[end : match.start()]
            if begin is None and at is None:
                at = match.start()
            elif (
                (between and not between[-1:].isspace())
                or len(between) > LONGEST
                or (
                    between.strip()
                    and not (_STRONG.search(between) or has_time(between) or _is_level(between, begin))
                )
            ):
                break
            else:
                at = match.start()
            end = match.end()
            if line[end : end + 1] != "(" and not self.rules.inner.match(line, end):
                break
        return at

    def _message_at(self, line: str) -> int | None:
        """Where a milestone's text begins in a line that has a time but no record of the server's own."""
        if origin(line, self.rules).source:
            return None
        for rule in announced(self.rules, line):
            own = rule.group == "milestone" and not (rule.weak or rule.rank_only)
            own = own and version_key(rule.first) is not None  # not a line of NCCL or torch
            match = rule.search(line) if own else None
            if match and 0 < match.start() <= LONGEST and has_time(line[: match.start()]):
                return match.start()
        return None

    def _frame_at(self, line: str) -> int | None:
        """Where a frame of a traceback begins behind an envelope: of a start that fails before its first record."""
        match = _FRAME.match(line) if '  File "' in line else None
        if match is None or _SAYS_ERROR.search(match["prefix"]):
            return None
        where = origin(line, self.rules)
        if where.body and where.source != "other":  # a prefix of the server's own, or of torch
            return None
        return self._named_at(line, match.end("prefix"))

    def _named_at(self, line: str, end: int) -> int | None:
        """Where the name of a process stands that ends at ``end``: it is the server's, and no envelope."""
        heads = self.rules.heads is not None
        for at in (at for at in range(end) if heads and line[at] == "("):
            record = self.rules.record.match(line, at)
            if record is not None and record.end() == end:
                return at
        return end

    def open(self, lines: list[str], base: int) -> Iterator[Opened]:
        """The lines without their envelope, some of them dropped, some cut in several; base: number of the first."""
        alone = any(shape.alone for shape in self.shapes)
        for index, line in enumerate(lines):
            opened = self._open(line, self.shapes)
            if opened is None:
                if not alone:
                    yield Opened(base + index, line)
                continue
            text, prefix, partial = opened
            source, t = read_prefix(prefix, self.one_writer, self.numbers_name)
            found = decode(text) if self.json is not None and text[:1] == "{" else None
            value = value_at(found, self.json) if found is not None and self.json is not None else None
            if found is None or value is None:
                yield Opened(
                    base + index, _REPEATED.sub("", text) if "[repeated" in text else text, source, t, partial
                )
                continue
            t = stamp(found) if t is None else t
            more = bool(self.json) and "log" in (self.json or ()) and "stream" in found and not value.endswith("\n")
            source = source or container(found)
            parts = value.rstrip("\n").split("\n") if value.strip() else [value.rstrip("\n")]
            for part in parts:
                inside = self._open(part, self.inner) if self.inner else None
                if inside is not None and inside[1]:
                    part, prefix, _ = inside
                    inner_source, inner_t = read_prefix(prefix, self.one_writer, self.numbers_name)
                    source, t = inner_source or source, t if t is not None else inner_t
                yield Opened(base + index, part, source, t, more)

    def _open(self, line: str, shapes: list[Shape]) -> tuple[str, str, bool] | None:
        """Text, prefix, and whether it goes on in the next entry; None: no shape fits."""
        for shape in shapes:
            match = shape.pattern.match(line)
            if match is None:
                continue
            text, prefix = line[match.end() :], match[0]
            edge = prefix.lstrip()[:1]
            if edge in _EDGES and text.rstrip().endswith(edge):  # a box around the text, a row of a table
                text = text.rstrip()[:-1].rstrip()
            if shape.quote:
                text = unquoted(text, shape)
            return text, prefix, prefix.endswith(" P ") and _PARTIAL.search(prefix) is not None
        return (line, "", False) if self.json is not None and line[:1] == "{" else None


def uncoloured(text: str) -> str:
    """``text`` without colours."""
    return COLOUR.sub("", text) if "\x1b" in text or BARE_COLOUR in text else text


def _is_level(between: str, begin: re.Match[str] | None) -> bool:
    """Whether a time without a date, a level and blanks stand before the record: another logger's prefix."""
    return begin is not None and epoch(begin["time"]) is None and not without_level(between).strip()
