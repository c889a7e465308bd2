"""All that stacks tell of a server at one moment, as lines and as data: for the command line and the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from sgmon.analyse.stacks.merge import merge, of_ranks
from sgmon.analyse.stacks.phase import phase_of_all
from sgmon.analyse.stacks.ras import words as ras_words
from sgmon.analyse.stacks.render import class_lines, frame_lines, tree_lines
from sgmon.analyse.stacks.tree import tree
from sgmon.analyse.stacks.waits import waits_in
from sgmon.model import CauseHit, Missing, RasReading, StackClass, StackDump
from sgmon.servers import registry
from sgmon.units import plural


class Summary(Struct, frozen=True):
    """Classes, phase, causes of one request. sgmon_stacks: version of this form in JSON.

    waits: (pid, words) of every process that is known to wait, from its newest dump.
    """

    sgmon_stacks: int
    pid: int
    family: str
    version: str
    phase: str
    classes: tuple[StackClass, ...]
    causes: tuple[CauseHit, ...]
    dumps: tuple[StackDump, ...]
    ras: RasReading | None = None
    missing: tuple[Missing, ...] = ()
    waits: tuple[tuple[int, str], ...] = ()


def summarize(
    pid: int,
    family: str,
    version: str,
    dumps: Sequence[StackDump],
    causes: Sequence[CauseHit] = (),
    ras: RasReading | None = None,
) -> Summary:
    """The summary of these dumps. Refusals are kept once for each reason."""
    rules = registry.get(family).stacks
    missing = {found.why: found for dump in dumps for found in dump.missing}
    newest = {dump.pid: dump for dump in dumps if dump.threads}
    return Summary(
        sgmon_stacks=2,
        pid=pid,
        family=family,
        version=version,
        phase=phase_of_all(dumps, version, rules),
        classes=merge(dumps, rules),
        causes=tuple(causes),
        dumps=tuple(dumps),
        ras=ras,
        missing=tuple(missing.values()),
        waits=tuple(
            (dump.pid, wait.words) for dump in newest.values() if (wait := waits_in(dump, rules)) is not None
        ),
    )


def summary_lines(found: Summary, *, full: bool = False) -> Iterator[str]:
    """The summary for a terminal or a report: what was run, the classes, the launcher, why, what to do."""
    label = registry.get(found.family).label
    name = f"{label} {found.version}" if found.version else f"{label} (version not known)"
    phase = (
        f"by its stacks {registry.get(found.family).phases.during(found.phase)}"
        if found.phase
        else "its stacks prove no phase"
    )
    yield f"{name}, pid {found.pid}; {phase}"
    yield from _commands(found.dumps)
    yield ""
    yield from class_lines(found.classes, full=full)
    ranks = of_ranks(found.dumps)
    if full and len({dump.rank for dump in ranks}) > 1:
        yield from ("", "tree (outermost first)", *tree_lines(tree(found.dumps)))
    yield from _others([dump for dump in found.dumps if dump not in ranks], found, full)
    yield from _causes(found.causes)
    if found.ras is not None:
        yield from ("", "NCCL", *(f"  {line}" for line in ras_words(found.ras)))
    for missing in found.missing:
        yield ""
        yield f"no {missing.signal}: {missing.why}"
        yield from (f"  {part}" for part in missing.remedy.split("; ") if part)


def _commands(dumps: Sequence[StackDump]) -> Iterator[str]:
    """The command of the first dump, to copy, and what all of them cost."""
    ran = [dump for dump in dumps if dump.command]
    if not ran:
        return
    samples = max(dump.sample for dump in ran) + 1
    count = len({dump.pid for dump in ran})
    slowest = max(dump.took_s or 0.0 for dump in ran)
    yield f"$ {ran[0].command}"
    yield (
        f"  {count} {'process' if count == 1 else 'processes'}, {plural(samples, 'sample')} of each rank; "
        f"the slowest dump took {slowest * 1000:.0f} ms"
    )


def _others(dumps: Sequence[StackDump], found: Summary, full: bool) -> Iterator[str]:
    """Launcher and its like: one line each, what they wait in; their frames only in full."""
    newest = {dump.pid: dump for dump in dumps if dump.threads}
    waits = dict(found.waits)
    if newest:
        yield ""
    for dump in newest.values():
        frames, wait = dump.threads[0].frames, waits.get(dump.pid)
        role = registry.role_label(found.family, dump.role)
        place = f"is in {frames[0].function}" if frames else "shows no frames"
        yield f"{role} (pid {dump.pid}) {f'waits in {wait}' if wait else place}"
        if full:
            yield from frame_lines(frames, full=True)


def _causes(causes: Sequence[CauseHit]) -> Iterator[str]:
    if causes:
        yield from ("", "likely causes" if any(not hit.slow for hit in causes) else "why it takes long")
    for hit in causes:
        kind = "slow, no hang" if hit.slow else "cause"
        yield f"  {hit.confidence * 100:.0f} % · {hit.title} ({kind}{', your own entry' if hit.by_user else ''})"
        yield from (f"       seen: {text}" for text in hit.evidence[:3])
        if hit.advice:
            yield f"       do: {hit.advice}"
        if hit.command:
            yield f"       $ {hit.command}"
        if hit.sources:
            yield f"       see: {hit.sources[0]}"
