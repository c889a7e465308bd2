"""Which error line is the first cause: of all candidates the best grade wins, then the first line."""

from __future__ import annotations

from sgmon.analyse.log.candidates import CONSEQUENCE, KILLED, NOTICE, Candidate, is_explained
from sgmon.analyse.log.catalogue import GRADES
from sgmon.analyse.log.errors import Errors
from sgmon.model.log import Complaint
from sgmon.patterns import regex
from sgmon.servers.family import LogRules
from sgmon.text import safe

MOST_COMPLAINTS = 64
COMPLAINT_TEXT = 200
_SIGNALLED = regex(r"exit code:? -(\d+)")


def first_cause(errors: Errors, stopped_line: int | None = None) -> Candidate | None:
    """The candidate nearest to the cause. After an asked-for stop (SIGTERM) only causes count, no victims."""
    best: Candidate | None = None
    found = errors.all()
    for candidate in found:
        if candidate.grade == NOTICE or (candidate.grade == KILLED and is_explained(candidate, found)):
            continue
        killed = candidate.shell or (candidate.block and candidate.grade == KILLED)  # as another program tells it
        if killed and _ended_itself(errors, candidate.line):
            continue
        if stopped_line is not None and candidate.line > stopped_line and candidate.grade >= KILLED:
            continue
        if best is None or candidate.grade < best.grade:
            best = candidate
    return best


def _ended_itself(errors: Errors, line: int) -> bool:
    """Whether the server had begun to end its own processes before ``line``."""
    if errors.cleanup_line is not None and errors.cleanup_line < line:
        return True
    return any(c.line < line and c.grade == CONSEQUENCE for c in errors.candidates)


def fatal(errors: Errors, stopped_line: int | None = None) -> Candidate | None:
    """The first line after which this start cannot succeed."""
    for candidate in errors.all():
        if stopped_line is not None and candidate.line > stopped_line and candidate.grade >= KILLED:
            continue
        if candidate.fatal:
            return candidate
    return None


def complaints(errors: Errors) -> tuple[Complaint, ...]:
    """The first error lines and the first sign that the server ends its own processes, by line."""
    found = [_complaint(errors.log, c) for c in errors.all()[:MOST_COMPLAINTS] if c.grade != NOTICE and not c.shell]
    if errors.cleanup_line is not None:
        found.append(Complaint("cleanup", "cleanup", errors.cleanup_line, seen_t=errors.cleanup_t))
    return tuple(sorted(found, key=lambda c: c.line))


def _complaint(log: LogRules, candidate: Candidate) -> Complaint:
    died = log.died.search(candidate.text)
    groups = {} if died is None else {name: value for name, value in died.groupdict().items() if value}
    pid = groups.pop("pid", None)
    number = next(iter(groups.values()), None)
    signalled = _SIGNALLED.search(candidate.text)
    prefix = log.record.match(candidate.text) if log.heads is not None else None
    by = prefix.groupdict().get("pid") if prefix is not None else None
    return Complaint(
        kind=candidate.kind,
        grade=GRADES[candidate.grade],
        line=candidate.line,
        rank="" if candidate.rank.startswith("#") else candidate.rank,
        seen_t=candidate.seen_t,
        pid=int(pid) if pid else None,
        index=int(number) if number and number.isdigit() else None,
        signalled=candidate.grade == KILLED or signalled is not None,
        signal=None if signalled is None else int(signalled[1]),
        text=safe(candidate.text.strip(), COMPLAINT_TEXT),
        by=int(by) if by else None,
    )
