"""Two finished starts beside each other: where they part, and what was different from the beginning. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from sgmon import units
from sgmon.history.finished_start import FinishedStart, PassedMilestone
from sgmon.patterns import regex

#: arguments that differ between any two starts and explain nothing
_IGNORED = frozenset({"random_seed", "nccl_port", "port", "grpc_port", "log_file"})
#: a smaller difference between two phases is not worth a sentence
_SLOWER_S = 0.5
#: phases whose lines are a rank's own
_OF_RANKS = frozenset({"dist_init", "weights", "kv_cache", "graphs", "scheduler_ready"})
_FIRST = regex(r"[A-Z_]+0")
#: milestones that are printed or not, whatever the start does: by caches, settings of NCCL, or races
_CHATTER = frozenset(
    {
        *("launch", "tokenizer_init", "gloo_connected", "nccl_comm", "nccl_init_complete", "first_collective"),
        *("mq_connect", "custom_ar", "jit_flashinfer", "jit_deepgemm", "jit_aiter", "jit_inductor"),
        *("jit_inductor_autotune", "kv_profile", "weights_format", "weights_progress", "graph_progress"),
        *("draft_weights_progress", "draft_graph_progress", "weights_quant", "warmup_request"),
    }
)
_KEY = ("model", "version", "parallel", "gpu", "host", "mount", "caches")


class MilestonePair(Struct, frozen=True):
    """One milestone of one rank in both starts; None: not there."""

    name: str
    rank: str
    a: PassedMilestone | None
    b: PassedMilestone | None


class StartDiff(Struct, frozen=True):
    """What differs between A and B. first_divergence: the first milestone that only one of them has passed.

    key, args, env: (name, in A, in B). slower: the phase whose duration differs most, and by how many seconds B
    took longer (negative: shorter).
    """

    pairs: tuple[MilestonePair, ...]
    first_divergence: MilestonePair | None
    key: tuple[tuple[str, str, str], ...]
    args: tuple[tuple[str, str, str], ...]
    env: tuple[tuple[str, str, str], ...]
    slower: tuple[str, float] | None


def compare(a: FinishedStart, b: FinishedStart) -> StartDiff:
    """Pairs in the order of the start that went further; what only the other has comes last.

    Ranks are paired by what they are: the only rank of one start is rank 0 of the other. No divergence is: what lies
    before the beginning of an excerpt, a rank that the other start does not have, a line that is not always printed.
    """
    in_a, in_b = _by_key(a, b), _by_key(b, a)
    longer, shorter = (in_a, in_b) if len(in_a) >= len(in_b) else (in_b, in_a)
    keys = [*longer, *(key for key in shorter if key not in longer)]
    pairs = tuple(MilestonePair(name, rank, in_a.get((name, rank)), in_b.get((name, rank))) for name, rank in keys)
    return StartDiff(
        pairs=pairs,
        first_divergence=_divergence(pairs),
        key=tuple(
            (name, getattr(a.key, name), getattr(b.key, name))
            for name in _KEY
            if getattr(a.key, name) != getattr(b.key, name)
        ),
        args=tuple(row for row in _changed(a.args, b.args) if row[0].lstrip("-").replace("-", "_") not in _IGNORED),
        env=_changed(a.env, b.env),
        slower=_slower(a, b),
    )


def as_lines(diff: StartDiff, a: FinishedStart, b: FinishedStart, name_a: str, name_b: str) -> Iterator[str]:
    """The comparison as text: both starts, where they part, what differs, all milestones."""
    yield from (f"A  {name_a}: {_words(a)}", f"B  {name_b}: {_words(b)}", "")
    first = diff.first_divergence
    if first is None:
        yield "Both have passed the same milestones."
    else:
        has, lacks = ("A", "B") if first.b is None else ("B", "A")
        rank = f" {first.rank}" if first.rank else ""
        yield f"First divergence:{rank} {first.name} is in {has} ({_place(first.a or first.b)}) and not in {lacks}."
    if diff.slower is not None:
        phase, longer_s = diff.slower
        word = "longer" if longer_s > 0 else "shorter"
        yield f"Largest difference: {phase} took {units.duration(abs(longer_s))} {word} in B."
    for title, rows in (("Differs", diff.key), ("Arguments", diff.args), ("Settings", diff.env)):
        if rows:
            yield from ("", f"{title} (A | B):")
            yield from (f"  {name}: {in_a or '?'}  |  {in_b or '?'}" for name, in_a, in_b in rows)
    yield from ("", f"{'milestone':<26}{'rank':<12}{'A':>20}{'B':>20}")
    yield from (f"{pair.name:<26}{pair.rank:<12}{_place(pair.a):>20}{_place(pair.b):>20}" for pair in diff.pairs)


def _by_key(start: FinishedStart, other: FinishedStart) -> dict[tuple[str, str], PassedMilestone]:
    known = {rank_of(passed.rank) for passed in other.milestones}
    own = {rank_of(passed.rank) for passed in start.milestones}
    found: dict[tuple[str, str], PassedMilestone] = {}
    for passed in start.milestones:
        rank = rank_of(passed.rank)
        if rank == "" and own == {""} and "TP0" in known and passed.phase in _OF_RANKS:
            rank = "TP0"
        found.setdefault((passed.name, rank), passed)
    return found


def rank_of(name: str) -> str:
    """A rank without the dimensions in which it is the first: "DP0 TP3" -> "TP3", "DP0 PP0 TP0" -> "TP0"."""
    tokens = name.split()
    return " ".join(token for token in tokens if token.startswith("TP") or not _FIRST.fullmatch(token)) or name


def _divergence(pairs: tuple[MilestonePair, ...]) -> MilestonePair | None:
    both = [index for index, pair in enumerate(pairs) if pair.a is not None and pair.b is not None]
    if not both:
        return next(iter(pairs), None)
    ranks = ({pair.rank for pair in pairs if pair.a}, {pair.rank for pair in pairs if pair.b})
    for pair in pairs[both[0] :]:
        missing = pair.a is None or pair.b is None
        if missing and pair.name not in _CHATTER and all(pair.rank in known for known in ranks):
            return pair
    return None


def _slower(a: FinishedStart, b: FinishedStart) -> tuple[str, float] | None:
    took_a = dict(a.phases)
    longer = [(phase, took_s - took_a[phase]) for phase, took_s in b.phases if phase in took_a]
    largest = max(longer, key=lambda item: abs(item[1]), default=None)
    return largest if largest is not None and abs(largest[1]) >= _SLOWER_S else None


def _changed(a: tuple[tuple[str, str], ...], b: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str, str], ...]:
    """(name, in A, in B); "-": not there. Nothing when one of them is not known at all."""
    if not a or not b:
        return ()
    in_a, in_b = dict(a), dict(b)
    both = [*in_a, *(name for name in in_b if name not in in_a)]
    return tuple(
        (name, in_a.get(name, "-"), in_b.get(name, "-")) for name in both if in_a.get(name) != in_b.get(name)
    )


def _words(start: FinishedStart) -> str:
    took = units.duration(start.duration_s)
    version, parallel = start.key.version or "?", start.key.parallel or "?"
    return f"{start.outcome} after {took}, {start.lines} lines, version {version}, {parallel}"


def _place(passed: PassedMilestone | None) -> str:
    return "-" if passed is None else f"line {passed.line} +{units.duration(passed.at_s)}"
