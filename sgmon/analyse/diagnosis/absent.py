"""A rank that has no process at all: it died before anybody looked, and an old launcher never notices."""

from __future__ import annotations

from sgmon.analyse.diagnosis.context import Context
from sgmon.model import Evidence, NextStep, Role, Verdict
from sgmon.units import plural, rank_list

#: seconds that the other ranks must have been seen without it: ranks are born within a second of each other
SEEN_S = 20.0


def absent(context: Context) -> Verdict | None:
    """Only for plain tensor parallelism on one node, where every rank must be a child of this launcher.

    Some launchers wait for a dead rank for ever.
    """
    args = context.args
    if args.tp < 2 or (args.dp, args.pp, args.nnodes) != (1, 1, 1) or context.launcher is None:
        return None
    titled = [rank for rank in context.ranks if rank.role is Role.WORKER]
    if not titled or len(titled) != len(context.ranks) or len(titled) >= args.tp:
        return None
    if any(v.clock is None or context.t - (v.clock.first_t or context.t) < SEEN_S for v in titled):
        return None
    children = context.family.discovery.expected_children(Role.LAUNCHER, args, context.version)
    here = {rank.name for rank in titled}
    lost = tuple(slot.rank for slot in children if slot.role is Role.WORKER and slot.rank not in here)
    if not lost:
        return None
    worker = context.label(Role.WORKER)
    has = "has" if len(lost) == 1 else "have"
    search = f"grep -n -i -E 'died|killed|exception' {context.snapshot.log.path}"
    return Verdict(
        "crashed",
        f"{rank_list(lost)} {has} no process {context.in_phase}: gone before sgmon looked",
        phase=context.phase,
        confidence=0.75,
        rule="rank-absent",
        odd_ranks=lost,
        evidence=(
            Evidence("args", f"started with --tp {args.tp}"),
            Evidence("proc", f"the launcher (pid {context.launcher.pid}) has {plural(len(titled), worker)}"),
        ),
        next=(NextStep("Look for its end in the log", search),),
    )
