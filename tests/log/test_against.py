"""Two logs beside each other: ranks by what they are, excerpts, and what really differs."""

from __future__ import annotations

from sgmon.analyse.log.fold import LogFold
from sgmon.history.compare import StartDiff, compare
from sgmon.history.from_snapshot import start_of_log
from sgmon.model import LogReading
from tests.log.loading import fold

DIST = "[2026-01-29 13:12:40{r}] Init torch distributed begin.\n[2026-01-29 13:12:44{r}] Init torch distributed ends. mem usage=0.13 GB\n"
LOAD = "[2026-01-29 13:12:45{r}] Load weight begin. avail mem=21.63 GB\n"
END = "[2026-01-29 13:12:55{r}] Load weight end. type=X, avail mem=6.09 GB\n"
POOL = "[2026-01-29 13:12:56{r}] Memory pool end. avail mem=6.09 GB\n"
NCCL = "[2026-01-29 13:12:41 TP0] sglang is using nccl==2.27.5\n"


def diff(a: str, b: str) -> StartDiff:
    return compare(start_of_log(fold(a), "a"), start_of_log(fold(b), "b"))


def text(*parts: str, ranks: tuple[str, ...] = (" TP0", " TP1")) -> str:
    return "".join(part.format(r=rank) for part in parts for rank in ranks)


def test_the_first_thing_that_differs() -> None:
    first = diff(text(DIST, LOAD, END, POOL), text(DIST, LOAD)).first_divergence
    assert first is not None and (first.name, first.rank, first.b) == ("load_end", "TP0", None)


def test_an_excerpt_begins_where_it_begins() -> None:
    assert diff(text(DIST, LOAD, END), text(LOAD, END)).first_divergence is None


def test_ranks_that_the_other_does_not_have_are_no_difference() -> None:
    more = (" TP0", " TP1", " TP2", " TP3")
    assert diff(text(DIST, LOAD, END), text(DIST, LOAD, END, ranks=more)).first_divergence is None


def test_the_only_rank_is_rank_0() -> None:
    found = diff(text(DIST, LOAD, END, ranks=("",)), text(DIST, LOAD, END, ranks=(" TP0",)))
    assert found.first_divergence is None
    assert {pair.rank for pair in found.pairs} == {"TP0"}
    deep = diff(text(DIST, LOAD, ranks=(" DP0 TP0",)), text(DIST, LOAD, ranks=(" TP0",)))
    assert deep.first_divergence is None


def test_lines_that_are_not_always_printed_are_no_difference() -> None:
    assert diff(text(DIST, LOAD) + NCCL, text(DIST, LOAD)).first_divergence is None


def test_a_line_without_a_date_has_the_time_of_the_dated_one_before_it() -> None:
    """uvicorn's lines beside vLLM have none: a start that took 9 s was "ready after 0.0s"."""
    log = (
        "(APIServer pid=7) INFO 11-29 22:55:06 [utils.py:278] non-default args: {'model_tag': 'm', 'port': 31040}\n"
        "(EngineCore pid=8) INFO 11-29 22:55:15 [core.py:302] init engine (profile, create kv cache, warmup model) took 1.0 s\n"
        "INFO:     Application startup complete.\n"
    )
    made = LogFold(epoch=1_795_950_000.0)  # 29 November 2026
    made.feed(LogReading("server.log", text=log), 1.0)
    run = start_of_log(made.state(), "a")
    assert (run.outcome, run.duration_s) == ("ready", 9.0)
