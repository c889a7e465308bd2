"""One record of a log, classified: who wrote it, which rules match, what kind of line it is. Pure, without memory."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sgmon.analyse.log.bars import Frame, frames
from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.prefix import origin
from sgmon.patterns import regex
from sgmon.servers.family import LogRules

_EXCEPTION = regex(
    r"(?:[A-Za-z_][\w.]*\.)?(?P<name>[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|OOM)|Exception"
    r"|(?<=\.)[a-z]\w*(?:Error|Exception))(?::|\s*$)"
)
_HEADER_EXCEPTION = regex(r":\s+(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w+)(?:\(.*\))?: ")
_QUALIFIED = regex(r"(?:[a-z_]\w*\.)+(?P<name>[A-Z]\w*)(?:: |:?\s*$)")
_ACCESS = regex(r'"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS) \S+ HTTP/[\d.]+" \d')
_FRAME_LINE = regex(
    r'\s*File ".*", line \d+|\s+[~^]+\s*$|Traceback \(most recent call last\)'
    r"|(?:Current thread|Thread) 0x[0-9a-f]+|Stack \(most recent call first\)"
    r"|Extension modules: |During handling of the above|The above exception was"
)
_FRAME = regex(r'\s*File "[^"]+", line \d+, in \S')
#: how lines below their exception begin, which are no quoted source code: pydantic's, multiprocessing's
_BELOW = ("Value error, ", "An attempt has been made to start a new process before")
_WARNING = regex(r"\bwarn(?:ing)?\b|deprecated|\bfailed to\b|\bnot (?:set|found|available)\b", re.I)


class Record:
    """What a record is. body: the text without its prefix. noise: it only sounds alarming. bars: frames of bars.

    milestones, errors: rules that match and count (an error does not in quoted source code). request: it holds the
    text of a request, of which no rule is asked.
    """

    __slots__ = (
        "bars",
        "body",
        "cleanup",
        "clue",
        "errors",
        "milestones",
        "noise",
        "request",
        "text",
        "unasked",
        "where",
    )

    def __init__(self, text: str, rules: Iterable[Rule], log: LogRules) -> None:
        self.text = text
        self.where = origin(text, log)
        self.body = body = text[self.where.body :]
        self.request = is_request(body, 0, log)
        self.bars: list[Frame] = frames(text, log.bars) if "%" in text and not self.request else []
        self.milestones: list[tuple[Rule, re.Match[str]]] = []
        self.errors: list[Rule] = []
        self.noise = self.cleanup = False
        self.unasked: Rule | None = None
        self.clue = ""
        for rule in () if self.request else rules:
            match = rule.search(text)
            if match is None:
                continue
            if rule.group == "milestone":
                self.milestones.append((rule, match))
            elif rule.group == "noise":
                self.noise = True
                self.cleanup = self.cleanup or rule.cleanup
                self.unasked = rule if rule.unasked else self.unasked
            elif rule.group == "clue":
                self.clue = rule.phase
            elif is_error(rule, body):
                self.errors.append(rule)

    @property
    def follows_traceback(self) -> bool:
        """Whether, even without a prefix, it is a word about the end after a traceback, no part of it."""
        own = any(rule.grade == "consequence" or rule.shell for rule in self.errors)
        return own or any(not rule.rank_only for rule, _ in self.milestones)

    def described(self) -> tuple[str, str, str]:
        """Kind, level and milestone, as ``LogLine`` has them."""
        body, level = self.body, self.where.level
        if self.request:
            return "", level, ""
        milestone = next((rule.name for rule, _ in self.milestones if rule.is_shown), "")
        kind = "milestone" if milestone else ""
        if self.noise:
            return kind or "noise", "", milestone
        if any(rule.grade != "notice" for rule in self.errors) or exception_name(body):
            return "error", "error", milestone
        if self.errors:
            kind = "warning"
        if looks_like_traceback(body) or looks_like_traceback(self.text):
            lost = "hit an exception" in body
            return "error" if lost else "traceback", "error" if lost else level, milestone
        if self.bars:
            return "bar", level, self.bars[-1].name
        if kind:
            return kind, level, milestone
        if "HTTP/" in body and _ACCESS.search(body):
            return "access", level, milestone
        if level == "error":
            return "error", level, milestone
        if level == "warning" or _sounds_wrong(body[:200]):
            return "warning", "warning", milestone
        return "", level, milestone


def fragments(text: str, log: LogRules) -> list[str]:
    """``text`` cut at ``\\r`` and where another record begins inside it (glued to a bar, or torn)."""
    found: list[str] = []
    for part in text.split("\r") if "\r" in text else (text,):
        start = 0
        if _has_hint(part, 1, log):
            own = log.record.match(part)
            end = own.end() if own else 0
            if _has_hint(part, max(1, end - 1), log) and not is_request(part, end, log):
                for match in log.inner.finditer(part, max(1, end)):
                    if match.start() > start:
                        found.append(part[start : match.start()])
                        start = match.start()
        if start < len(part):
            found.append(part[start:])
    return found


def _has_hint(text: str, at: int, log: LogRules) -> bool:
    """Whether another record may begin behind ``at``."""
    rest = text[at:]
    return any(hint in rest for hint in log.inner_hints)


def is_request(text: str, body: int, log: LogRules) -> bool:
    """Whether this record holds the text of a request, which may be anything, a log among others. body: where its
    message begins."""
    return log.requests is not None and log.requests.match(text, body) is not None


def exception_name(body: str) -> str:
    """ "AssertionError" if this is the last line of a traceback ("pkg.Error: text" at the left edge), else ""."""
    match = _EXCEPTION.match(body)
    return match["name"] if match else ""


def qualified_exception(body: str) -> str:
    """ "Unsupported" of "torch._dynamo.exc.Unsupported: text": below frames an exception, whatever its name."""
    match = _QUALIFIED.match(body)
    return match["name"] if match else ""


def header_exception(body: str) -> str:
    """ "Unsupported" of "Scheduler hit an exception: pkg.Unsupported: no", the class of an exception; else ""."""
    match = _HEADER_EXCEPTION.search(body) if "Traceback (most" not in body else None
    return match["name"] if match else ""


def index_of_dead(text: str, log: LogRules) -> str:
    """ "#1" for the process of that index in the launch list (not always the rank of that number)."""
    died = log.died.search(text)
    number = None if died is None else next((v for n, v in died.groupdict().items() if v and n != "pid"), None)
    return f"#{number}" if number is not None else ""


def looks_like_traceback(text: str) -> bool:
    """Whether the line can only be part of a traceback or of faulthandler's dump."""
    return bool(_FRAME_LINE.match(text)) or "Traceback (most recent call last)" in text


def is_frame(text: str) -> bool:
    """Whether the line is a frame of a traceback (faulthandler writes no comma)."""
    return _FRAME.match(text) is not None


def is_error(rule: Rule, body: str) -> bool:
    """Whether a matching error rule counts here: not in quoted source code, some only in exception lines."""
    if body[:1].isspace():
        return body.lstrip().startswith(_BELOW)
    if body.startswith("raise "):
        return False  # pasted without its indentation
    return not rule.in_block or bool(exception_name(body))


def _sounds_wrong(text: str) -> bool:
    low = text.lower()  # the words first: ignoring case costs re 100 ns a letter
    if not ("warn" in low or "not " in low or "deprecated" in low or "failed to" in low):
        return False
    return _WARNING.search(text) is not None
