"""A rank that has no process at all: it died before anybody looked, and an old launcher never notices."""

from __future__ import annotations

from sgmon.analyse.diagnosis.context import Context
from sgmon.analyse.phase import during
from sgmon.model import Evidence, NextStep, Role, Verdict
from sgmon.units import rank_list

#: seconds that the other ranks must have been seen without it: ranks are born within a second of each other
SEEN_S = 20.0


def absent(context: Context) -> Verdict | None:
    """Only for plain tensor parallelism on one node, where every rank must be a child of this launcher.

    Up to 0.5.9 the launcher waits for a dead rank for ever (a blocking ``recv``, sglang entrypoints/engine.py).
    """
    args = context.args
    if args.tp < 2 or (args.dp, args.pp, args.nnodes) != (1, 1, 1) or context.launcher is None:
        return None
    titled = [v for v in context.ranks if v.process.role == Role.WORKER]
    if not titled or len(titled) != len(context.ranks) or len(titled) >= args.tp:
        return None
    if any(v.clock is None or context.t - (v.clock.first_t or context.t) < SEEN_S for v in titled):
        return None
    lost = tuple(f"TP{i}" for i in range(args.tp) if all(v.name.split()[-1:] != [f"TP{i}"] for v in titled))
    if not lost:
        return None
    has = "has" if len(lost) == 1 else "have"
    search = f"grep -n -i -E 'died|killed|exception' {context.snapshot.log.path}"
    return Verdict(
        "crashed",
        f"{rank_list(lost)} {has} no process {during(context.phase)}: gone before sgmon looked",
        phase=context.phase,
        confidence=0.75,
        rule="rank-absent",
        odd_ranks=lost,
        evidence=(
            Evidence("args", f"started with --tp {args.tp}"),
            Evidence("proc", f"the launcher (pid {context.launcher.pid}) has {len(titled)} scheduler(s)"),
        ),
        next=(NextStep("Look for its end in the log", search),),
    )
