"""What each line of a traceback tells: its frames, its exception, the file that it names, the fate of its process."""

from __future__ import annotations

from collections.abc import Iterable

from sgmon.analyse.log.candidates import EXCEPTION, Block, Candidate, snake
from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.prefix import Origin
from sgmon.analyse.log.records import exception_name, index_of_dead, looks_like_traceback, qualified_exception
from sgmon.model.stacks import Frame
from sgmon.patterns import regex
from sgmon.servers.family import LogRules

#: Frames of one that are kept.
LIMIT = 200
#: exceptions by which a process or a task is ended from outside: no cause
_ENDED = frozenset({"CancelledError", "KeyboardInterrupt", "SystemExit"})
#: a program begins in one of them
_OUTERMOST = ("<module>", "_run_module_as_main")
_CHAIN = ("During handling of the above", "The above exception was the direct")
_FRAME = regex(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+),? in (?P<function>[^\s^]+)')
_CUT_FRAME = regex(r"\s*Fi(?:le?)?(?:$| \")")
_MARKS = regex(r"[\s~^]+$")  # Python 3.11 marks the part of a source line that failed
#: a file that an exception names: a path, or a name with the ending of a model's files
_FILE = regex(
    r"(?<![\w./-])(/[\w./+@=-]+\.\w{1,12}|[\w.-]+\.(?:json|safetensors|model|bin|gguf|txt|jinja|yaml|pt|pth))(?![\w/])"
)
#: an exception as repr() writes it, which a server logs above the traceback
_REPR = regex(r"(?P<name>[A-Z]\w*(?:Error|Exception))\([\"'(].*\)\s*$")
_QUOTED = regex(r"(?:ray\.exceptions\.)?RayTaskError\((?P<name>\w+)\): ")


def continues(block: Block, body: str, where: Origin, log: LogRules) -> bool:
    """Whether this text still belongs to the traceback; what it tells of others that may follow is noted."""
    if not body.strip():
        block.blank = True
        return True
    opens = "Traceback (most recent call last)" in body
    chained = body.startswith(_CHAIN)
    if opens and block.complete and not block.chained and log.heads is not None:
        return False  # of another process, or the end of this one
    block.chained = chained or (block.chained and not opens)
    block.joined = block.joined or chained
    if chained or (looks_like_traceback(body) and not where.source):
        block.blank = False
        return True
    left = block.blank and not body[:1].isspace() and (block.complete or not exception_name(body))
    return not (where.source or left or opens)


def take_line(
    block: Block, number: int, body: str, found: Iterable[Rule], seen_t: float | None, log: LogRules
) -> bool:
    """Add a line to its traceback; whether it is the last frame of the server's own process. found: its errors."""
    name = exception_name(body)
    if not name and block.frames and block.plain is None:
        name = qualified_exception(body)
    is_frame = _take_frame(block, body, log)
    if not body.strip():
        return False
    last = log.heads is not None and bool(log.heads.last_frame.search(body))
    if last:
        block.main = block.fatal = True
    code = block.plain is None and body[:1].isspace() and not _MARKS.match(body) and not _CUT_FRAME.match(body)
    if code and not is_frame:
        _take_code(block, body, log)
    if name and not block.file:
        block.file = next(iter(_FILE.findall(body)), "")
    for rule in found:
        if block.best is None or rule.closeness < block.best.grade:
            rank = block.rank or index_of_dead(body, log)
            phase = rule.phase or (block.best.phase if block.best is not None else "")
            block.best = Candidate(
                rule.name, rule.closeness, number, body, rank, block.fatal, seen_t, True, phase=phase
            )
    other = _QUOTED.match(body) if "RayTaskError(" in body else None
    if other and block.quoted is None:
        kind = snake(other["name"])
        block.quoted = Candidate(kind, EXCEPTION, number, body, block.rank, block.fatal, seen_t, True)
    if name:
        _take_exception(block, name, number, body, seen_t)
    return last


def _take_frame(block: Block, body: str, log: LogRules) -> bool:
    """Keep a frame; whether the line is one."""
    frame = _FRAME.match(body)
    if frame is None:
        return False
    made = Frame(frame["function"], frame["file"], int(frame["line"]))
    if block.plain is not None:
        if block.joined and block.frames and len(block.later) < LIMIT:
            block.later.append(made)
    elif len(block.frames) < LIMIT:
        _take_fate(block, body, log)
        block.frames.insert(0 if "Fatal Python error" in block.text else len(block.frames), made)
        if len(block.frames) == 1 and made.function in _OUTERMOST and not block.headless:
            block.raised = True  # nothing of the program is left to catch it
    return True


def _take_fate(block: Block, body: str, log: LogRules) -> None:
    """What a frame tells of the fate of its process."""
    body = body.rstrip()  # a terminal's padding
    if log.ends is not None and log.ends.search(body):
        block.fatal = block.proven = True
    elif not (block.fatal or block.frames or block.headless) and log.caught is not None and log.caught.search(body):
        block.cancelled = True


def _take_code(block: Block, body: str, log: LogRules) -> None:
    """Keep a source line; one that has the ranks call a method by its name shows one more frame."""
    block.code = body.strip()
    called = log.calls.search(body) if log.calls is not None and block.frames else None
    if called:
        block.frames.append(Frame(called[1], log.called_in, 0))


def _take_exception(block: Block, name: str, number: int, body: str, seen_t: float | None) -> None:
    """Keep the exception that the traceback ends with. One by which somebody ended the process says nothing; a later
    one of its chain may."""
    if name in _ENDED and block.plain is None:
        block.ended = block.ended or not block.cancelled
        block.complete = block.cancelled = True
        block.interrupted = block.interrupted or name == "KeyboardInterrupt"
        return
    if block.plain is None:
        block.cancelled, block.ended = block.cancelled and not block.ended, False
        message = body.partition(":")[2].strip()
        line, text = (number, body) if message or block.headless else (block.line, block.text)
        block.plain = Candidate(snake(name), EXCEPTION, line, text, block.rank, block.fatal, seen_t, True)
    block.complete = True


def take_title(block: Block, number: int, above: str) -> None:
    """Keep the exception that the line above the traceback spells: it counts where the traceback's end is cut."""
    spelt = _REPR.match(above[len(block.head) :]) if block.head and above.startswith(block.head) else None
    if spelt:
        kind = snake(spelt["name"])
        block.quoted = Candidate(kind, EXCEPTION, number - 1, above, block.rank, block.fatal, block.seen_t, True)
