"""A server, or a neighbour of it, that lies: what it says of itself decides nothing that the kernel tells."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.analyse.log.fold import LogFold
from sgmon.analyse.store import Store
from sgmon.model import Event, LogReading, PortReading, ProcsReading, Snapshot
from sgmon.recording import codec
from tests.diagnosis.replay import RECORDINGS
from tests.security.poison import FORBIDDEN
from tests.ui import fakes
from tests.ui.screen import rows_of, running

#: of each recording: the ranks are stopped by then
UNTIL_S = 150.0
READY = "[2026-11-29 12:00:01] The server is fired up and ready to roll!\n"


def started(name: str, change) -> Snapshot:  # type: ignore[no-untyped-def]
    """The end of a recording of which ``change`` has altered the readings."""
    header, events = codec.read(RECORDINGS / f"{name}.jsonl.gz")
    store = Store(header.epoch)
    for event in events:
        if event.t > UNTIL_S:
            break
        store.step(change(event))
    return store.step(Event(store.snapshot.t + 1.0, "tick"))


def test_a_line_that_claims_readiness_is_not_ready() -> None:
    """The log says it, the port is refused: three signs are needed (docs/verdicts.md)."""

    def claims(event: Event) -> Event:
        reading = event.reading
        if isinstance(reading, LogReading):
            return replace(event, reading=replace(reading, text=READY + reading.text))
        if isinstance(reading, PortReading):
            return replace(event, reading=replace(reading, answer="refused", status=None, listeners=()))
        return event

    assert started("cpu-tp2-sigstop-load", claims).verdict.state != "ready"


def test_a_stranger_at_the_port_makes_nothing_ready() -> None:
    """Another process listens and answers 200."""

    def stranger(event: Event) -> Event:
        reading = event.reading
        if isinstance(reading, PortReading):
            listeners = tuple(replace(one, ours=False, pid=1) for one in reading.listeners)
            return replace(event, reading=replace(reading, answer="http", status=200, listeners=listeners))
        return event

    assert started("gpu-tp2-stop-capture", stranger).verdict.state != "ready"


def test_a_stopped_rank_stays_stopped_whatever_its_title_says() -> None:
    def titled(event: Event) -> Event:
        reading = event.reading
        if isinstance(reading, ProcsReading):
            lying = tuple(replace(p, title="sglang::scheduler_TP0 READY", comm="ready") for p in reading.processes)
            return replace(event, reading=replace(reading, processes=lying))
        return event

    honest, lied = started("gpu-tp2-stop-capture", lambda event: event), started("gpu-tp2-stop-capture", titled)
    assert (lied.verdict.state, lied.verdict.odd_ranks) == (honest.verdict.state, honest.verdict.odd_ranks)


@pytest.mark.parametrize("count", [1, 300])
def test_ranks_that_only_a_log_names_are_no_processes(count: int) -> None:
    """A log that names thousands of ranks costs memory of them, and makes no process."""
    invented = "".join(
        f"[2026-11-29 12:00:02 TP{4000 + n}] Load weight begin. avail mem=1.0 GB\n" for n in range(count)
    )

    def more(event: Event) -> Event:
        reading = event.reading
        return (
            replace(event, reading=replace(reading, text=reading.text + invented))
            if isinstance(reading, LogReading) and reading.offset == 0
            else event
        )

    end = started("cpu-tp2-tiny", more)
    assert not [rank for rank in end.ranks if rank.label.startswith("TP4") and rank.pid]


def test_a_log_line_gives_no_escape_and_no_number_beyond_its_own() -> None:
    fold = LogFold(epoch=fakes.EPOCH)
    fold.feed(LogReading("x", text=f"{READY[:-1]}\x1b[2J\u202e\r\n[2026-11-29 12:00:02 TP\x1b[31m0] \x9b31mx\n"), 1.0)
    last = fold.state().last_line
    assert last is not None and not FORBIDDEN.search(last.text)


@pytest.mark.parametrize(
    "markup", ["[red]x[/red]", "[/]", "[@click=app.quit]x[/]", "$(id)", "\\[", "[bold", "\u202eabc"]
)
async def test_markup_in_names_is_shown_as_it_is(markup: str) -> None:
    """A title or model that looks like markup of the screen is text; no link in it can be followed."""
    base = fakes.stuck()
    server = replace(base.server, args=replace(base.server.args, model_path=f"/m/{markup}"))  # type: ignore[type-var,union-attr]
    verdict = replace(base.verdict, headline=f"TP3 {markup} is stuck")
    async with running(replace(base, server=server, verdict=verdict), (120, 40)) as (app, _, pilot):
        rows = rows_of(app)
        assert markup.replace("\u202e", "\ufffd") in rows[0]
        await pilot.click(offset=(30, 0))
        assert app.is_running
