"""Where a traceback begins: at its title, or before the text that there is."""

from __future__ import annotations

from sgmon.analyse.log.errors import Errors
from sgmon.analyse.log.records import Record, exception_name, header_exception, is_frame, looks_like_traceback
from sgmon.servers.family import LogRules

#: lines below the begin of a traceback in which what is left of it may stand
TORN = 200


def opens_traceback(body: str, log: LogRules) -> bool:
    """Whether a traceback begins here, or the line names the exception itself."""
    if "Traceback (most recent call" in body or body.startswith("Fatal Python error"):
        return True
    return bool(log.fatal_header.search(body)) and (log.heads is not None or bool(header_exception(body)))


def ends_torn_traceback(body: str, number: int, errors: Errors) -> bool:
    """Whether this is the exception of a traceback of which no more is in the text than the source line that raised
    it. Below another traceback it may be the rest of that one, torn by what other processes print."""
    if errors.open is not None or not exception_name(body):
        return False
    raised = errors.previous[:1].isspace() and errors.previous.lstrip().startswith("raise ")
    return raised and (not errors.blocks or number - errors.blocks[-1].line > TORN)


def begins_with(record: Record, number: int, seen_t: float | None, errors: Errors, *, named: bool) -> bool:
    """Whether the text begins with the server's own records, as this one is. An excerpt may begin inside of a
    traceback, which is opened in ``errors`` then. named: the family's lines begin with the names of their writers."""
    where, body = record.where, record.body
    cut = body[:1].isspace() and ((where.body > 0 and where.level == "error") or looks_like_traceback(body))
    cut = cut or (bool(exception_name(body)) and errors.raises(record.text[: where.body]))
    if named and cut and not (errors.blocks or errors.candidates):
        errors.headless(number, record.text, seen_t, where.rank, record.text[: where.body])
    if where.source == "own":
        return not errors.raises(record.text[: where.body])  # else frames of a traceback may still follow
    if not named and not errors.blocks and body.lstrip()[:5] == "File " and is_frame(body):
        errors.headless(number, record.text, seen_t)
        errors.in_block(number, body, (), seen_t)
        return False
    inside = (number == 1 and not named and ": " in body) or errors.previous[:1].isspace()
    if inside and errors.open is None and not errors.blocks and exception_name(body):
        errors.headless(number, record.text, seen_t)
    return False
