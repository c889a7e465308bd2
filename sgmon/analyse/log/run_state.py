"""What one start of a server comes to: the state of its log, from all that its lines have told."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from sgmon.analyse.log import catalogue
from sgmon.analyse.log.behind import left_behind
from sgmon.analyse.log.candidates import CUT, EXCEPTION, Candidate, fatal_at_end
from sgmon.analyse.log.first_cause import complaints, fatal, first_cause
from sgmon.analyse.log.records import exception_name
from sgmon.analyse.log.run import Run
from sgmon.analyse.log.writers import Writers
from sgmon.analyse.stacks.phase import in_loop, launcher_phase_of_frames, phase_of_frames
from sgmon.model.log import LogError, LogState, Milestone, RankProgress
from sgmon.model.stacks import Frame as StackFrame
from sgmon.patterns import regex
from sgmon.servers import registry
from sgmon.servers.family import StackRules
from sgmon.text import safe

#: Longest error text kept.
ERROR_TEXT = 1_000
#: Lines after a cause in which advice is for it.
FAR = 12
#: Phases that the outermost frames of any traceback prove.
_VAGUE = ("", "launch", "spawn")
#: functions from which the whole start is called
_CALLERS = frozenset({"<module>", "main", "cmd", "_run_module_as_main"})
_TP0 = regex(r"\bTP0\b")
_CALL = regex(r"(?:return |await )?(?:\w[\w.]* = )?(?:(?:\w+\.)+(?=\w+(?:\(|$))|(?=\w+\())(?P<function>\w+)")
#: the first rank, or one that may be it
_FIRST = regex(r"\bTP0\b|^pid\d")


def state_of(run: Run, base: LogState) -> LogState:
    """``base`` (path, lines, times) with everything that the lines of ``run`` have told."""
    stopped = run.error_lines.sigterm_line
    failed = fatal(run.errors, stopped)
    cause = first_cause(run.errors, stopped)
    ready = run.milestones.ready_line
    outcome = "unfinished"
    if failed is not None:
        outcome = "crashed"
    elif ready is not None or run.milestones.dummy_line is not None:
        outcome = "ready"
        if run.error_lines.unhealthy_line is not None and run.error_lines.unhealthy_line > (ready or 0):
            outcome = "unhealthy"
    ranks, exceptions = _ranks(run)
    phase, behind = _phase(run, failed, cause)
    last = run.milestones.last or run.milestones.fallback or _fallback(run)
    return replace(
        base,
        version=run.given.version,
        args=run.given.args,
        phase=phase,
        reached=run.milestones.furthest,
        behind=behind,
        outcome=outcome,
        last_milestone=last,
        milestones=tuple(run.milestones.found),
        ranks=ranks,
        failed_ranks=exceptions,
        ranks_left_out=run.ranks.names.is_over,
        bars=tuple(run.bars.known.values()),
        error=_error(run, cause),
        complaints=complaints(run.errors),
        survived=_error(run, run.errors.overcome),
        ready_line=ready,
        ready_by_work=run.milestones.ready_by_work,
        http_up_line=run.milestones.http_up_line,
        bind_error_line=run.error_lines.bind_error_line,
        dummy_health_line=run.milestones.dummy_line,
        unresolved=run.unresolved,
        sigterm_line=run.error_lines.sigterm_line,
        interrupted_line=run.errors.interrupted_line,
        gate_open=run.milestones.gate_open,
        warnings=run.warnings,
        errors=run.errors.errors,
        noise=run.noise,
        runs=run.runs,
        unended=run.unended,
        run_line=run.first_line,
    )


def _behind(run: Run) -> tuple[str, tuple[str, ...]]:
    """Ranks that others have left behind, and their phase."""
    known = catalogue.of(run.log)
    others = {made.name for made in run.milestones.found if made.rank and not _FIRST.search(made.rank)}
    loud = not known.filtered.isdisjoint(others)

    def prints(name: str, rank: str) -> bool:
        if (loud and name in known.filtered) or (name in others and name in known.said_once):
            return True
        return not known.silent_by_design(run.given.version, name, rank)

    return left_behind(run.milestones, prints)


def _phase(run: Run, failed: Candidate | None, cause: Candidate | None) -> tuple[str, tuple[str, ...]]:
    """The phase of the ranks that are behind, and those ranks; of a crash what its cause proves."""
    key = (run.milestones.moves, run.given.version)
    if run.late is None or run.late[0] != key:
        run.late = (key, _behind(run))
    now = run.milestones.phase
    phase, behind = run.late[1]
    phase = phase or now
    if failed is None or cause is None:
        return phase or (cause.phase if cause is not None else ""), behind
    frames = cause.frames or _traceback_of(run, cause)
    stacks = registry.get(run.log.family).stacks
    loop = now if run.milestones.ready_line is None and now in ("http", "warmup", "serving") else "serving"
    own = run.milestones.tracks.get(cause.rank)
    by_rank = own.phase if own is not None and cause.rank else ""
    proven = _proven(frames, cause.code, stacks, loop)
    clue = next((phase for line, phase in run.remarks.clues if line == cause.line), "")
    named = cause.phase
    if named == "serving" and run.milestones.ready_line is None and now in ("http", "warmup"):
        named = now  # what strikes while serving strikes in the warm-up, too
    if named in _VAGUE and by_rank:
        named = ""  # it usually happens so early, and here it did not
    told = proven or named or by_rank or clue or phase or next((of_line for _, of_line in run.remarks.clues), "")
    told = told or launcher_phase_of_frames(_outer(cause) or cause.frames, stacks)
    return told or _of_others(run, cause, stacks, loop), behind


def _outer(cause: Candidate) -> tuple[StackFrame, ...]:
    """Frames of the server's own process, innermost first; of a traceback that is cut those whose phase is the same
    whatever they had called."""
    if cause.grade < CUT:
        return cause.outer
    return tuple(frame for frame in cause.outer if frame.function not in _CALLERS)


def _proven(frames: tuple[StackFrame, ...], code: str, stacks: StackRules, loop: str) -> str:
    """The phase that frames (innermost first) and the last source line below them prove, "" if none. loop: what the
    log tells of a rank that was in its loop: whether it serves."""
    if not frames:
        return ""
    stack = (*_called(code, frames), *frames)
    proven = phase_of_frames(stack, stacks)
    if proven == "warmup" or (proven == "scheduler_ready" and in_loop(stack, stacks)):
        return loop
    return "" if proven in _VAGUE else proven


def _of_others(run: Run, cause: Candidate, stacks: StackRules, loop: str) -> str:
    """The phase that another line of the failure names, or the frames of another rank's prove; "" where the cause
    has frames of its own."""
    if cause.frames:
        return ""
    failed = (block for block in run.errors.blocks if block.fatal and not block.main and block.frames)
    phases = (_proven((*reversed(block.frames),), block.code, stacks, loop) for block in failed)
    named = (other.phase for other in run.errors.all() if other.fatal and other.phase not in _VAGUE)
    return next(filter(None, phases), "") or next(named, "")


def _traceback_of(run: Run, cause: Candidate) -> tuple[StackFrame, ...]:
    """The frames, innermost first, of the traceback that the rank of a cause logged right after it."""
    if cause.block or not cause.rank or cause.grade > EXCEPTION:
        return ()
    after = (b for b in run.errors.blocks if b.rank == cause.rank and b.fatal and 0 < b.line - cause.line <= FAR)
    return tuple(reversed(next((block.frames for block in after), ())))


def _called(code: str, frames: tuple[StackFrame, ...]) -> tuple[StackFrame, ...]:
    """The call in the last source line of its traceback, as a frame: it raised in C, or the text is cut."""
    call = _CALL.match(code)
    return (StackFrame(call["function"], frames[0].file),) if call else ()


def _ranks(run: Run) -> tuple[tuple[RankProgress, ...], tuple[str, ...]]:
    """Last milestone per rank; "exception" for a rank that raised, unless all did (then the place tells more)."""
    if run.ranks.writers is not None:
        return _named_ranks(run, run.ranks.writers)
    blocks = [block.rank for block in run.errors.blocks if block.rank]
    progress = {rank.rank: rank for rank in run.milestones.progress(blocks)}
    raised: dict[str, RankProgress] = {}
    for block in run.errors.blocks:
        if block.rank and not block.cancelled and block.rank not in raised:
            raised[block.rank] = RankProgress(block.rank, "exception", block.line, seen_t=block.seen_t)
    weak: dict[str, RankProgress] = {}
    for made in run.error_lines.pseudo:
        if not made.rank:
            continue
        entry = RankProgress(made.rank, made.name, made.line, "", made.t, made.seen_t)
        if made.event == "raised":
            raised.setdefault(made.rank, entry)
        elif made.name == "store_lost" or made.rank not in weak:
            weak[made.rank] = entry
    known = [rank for rank in progress if rank]
    if len(known) > 1 and all(rank in raised for rank in known):
        return tuple(progress.values()), tuple(raised)
    for rank, entry in raised.items():
        old = progress.get(rank)
        if old is None or old.line < entry.line:
            progress[rank] = replace(entry, phase=old.phase if old else "")
    numbers = _by_number(progress)
    for rank, entry in weak.items():
        named = numbers.get(rank[4:], rank) if rank.startswith("rank") else run.log.rank(rank) or rank
        if named not in progress:
            progress[named] = replace(entry, rank=named)
            for number, own in _by_number((named,)).items():
                numbers.setdefault(number, own)
    many = run.given.args is not None and run.given.args.tp * run.given.args.dp * run.given.args.pp > 1
    if len(progress) > 1 or many:
        progress.pop("", None)
    return tuple(progress.values()), tuple(raised)


def _named_ranks(run: Run, writers: Writers) -> tuple[tuple[RankProgress, ...], tuple[str, ...]]:
    """The same where each line says who writes: a failed rank keeps its last milestone."""
    raised = [block.rank for block in run.errors.blocks if block.rank and not block.cancelled]
    progress = [made for made in run.milestones.progress() if not writers.is_engine(made.rank)]
    if writers.nameless_first and not any(_TP0.search(made.rank) for made in progress):
        first = run.milestones.of_rank("", "TP0")
        progress = [*([first] if first is not None else []), *(made for made in progress if made.rank)]
    if len(progress) > 1:
        progress = [made for made in progress if made.rank]
    failed = (rank for rank in raised if not writers.is_engine(rank))
    return tuple(progress), tuple(dict.fromkeys(failed))


def _by_number(names: Iterable[str]) -> dict[str, str]:
    """ "3" -> "TP3", as the log knows that rank (torch counts the same ranks: "rank3"); the first of several."""
    found: dict[str, str] = {}
    for name in names:
        match = re.search(r"\bTP(\d+)$", name)
        if match:
            found.setdefault(match[1], name)
    return found


def _fallback(run: Run) -> Milestone | None:
    """Where no milestone is in the text: the error that takes its place."""
    if run.ranks.writers is not None:
        return None
    blocks = [
        Milestone("exception", "error", "", b.line, b.rank, None, b.seen_t)
        for b in run.errors.blocks
        if b.fatal and not b.cancelled
    ]
    raised = sorted([*blocks, *(m for m in run.error_lines.pseudo if m.name == "exception")], key=lambda m: m.line)
    if raised:
        return raised[0]
    lost = [made for made in run.error_lines.pseudo if made.name == "store_lost"]
    if lost:
        return lost[-1]
    if run.error_lines.pseudo:
        return run.error_lines.pseudo[0]
    ends = (fatal_at_end(block) for block in run.errors.blocks if not (block.cancelled or block.is_torn))
    return next((Milestone("exception", "error", "", end.line, end.rank) for end in ends if end.fatal), None)


def _error(run: Run, cause: Candidate | None) -> LogError | None:
    if cause is None:
        return None
    rank = cause.rank if not cause.rank.startswith("#") else f"TP{cause.rank[1:]}"
    known = {rank.rank for rank in run.milestones.progress()}
    if (
        run.ranks.writers is not None
        and rank in run.ranks.writers.engines
        and (run.given.args is None or run.given.args.dp < 2)
    ):
        rank = rank if len(run.ranks.writers.engines) > 1 or rank != "DP0" else ""
    if cause.rank.startswith("#") and rank not in known:
        rank = f"scheduler_{cause.rank[1:]}" if cause.kind == "subprocess_died" else ""
    advice = next((text for line, text in run.remarks.remedies if cause.line <= line <= cause.line + FAR), "")
    text = safe(cause.text.strip(), ERROR_TEXT)
    name = exception_name(text)
    return LogError(
        cause.kind,
        cause.line,
        text,
        rank,
        cause.seen_t,
        advice,
        exception=name,
        message=text.partition(":")[2].strip() if name else "",
        code=safe(cause.code, ERROR_TEXT),
        place=_place(cause.frames),
        file=safe(cause.file, ERROR_TEXT),
    )


def _place(stack: tuple[StackFrame, ...]) -> str:
    """ "function (file.py:12)": the innermost frame outside of the standard library; "" without one."""
    for frame in stack:
        if "/lib/python" not in frame.file or "-packages/" in frame.file:
            return safe(f"{frame.function} ({frame.file.rsplit('/', 1)[-1]}:{frame.line})", 100)
    return ""
