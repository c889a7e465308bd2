"""Two dumps of a process, taken one after the other, are compared on the stack page."""

from sgmon.analyse.stacks.requests import with_reading
from sgmon.model import Frame, Role, Snapshot, StackDump, StacksReading, Thread
from tests.ui import fakes
from tests.ui.screen import running, text_of
from tui_app.stack_history import since_before
from widgets.line import plain


def _dump(t: float, pid: int, rank: str, *functions: str) -> StackDump:
    frames = tuple(Frame(name, "sglang/srt/x.py", 7) for name in functions)
    return StackDump(pid, rank, Role.WORKER, t, threads=(Thread(pid, "MainThread", frames=frames),))


def test_ranks_that_are_unchanged_are_told_from_the_one_that_moved() -> None:
    before = (_dump(10.0, 1, "TP0", "barrier", "load_model"), _dump(10.0, 2, "TP1", "read", "load_model"))
    now = (_dump(45.0, 1, "TP0", "barrier", "load_model"), _dump(45.0, 2, "TP1", "repack", "load_model"))
    snapshot = with_reading(with_reading(Snapshot(), StacksReading(1, "", before)), StacksReading(2, "", now))
    rows = [plain(row) for row in since_before(snapshot.stack_views[-1], None, "sglang")]
    assert any("TP0: the same frames and lines, 35s apart" in row for row in rows), rows
    assert any("TP1: moved inside load_model, 35s apart" in row for row in rows), rows
    assert any("was in read, is in repack" in row for row in rows), rows
    of_one = [plain(row) for row in since_before(snapshot.stack_views[-1], frozenset({1}), "sglang")]
    assert not any("TP1" in row for row in of_one), of_one


def test_the_first_dump_has_nothing_before_it() -> None:
    now = (_dump(45.0, 1, "TP0", "barrier"), _dump(46.0, 1, "TP0", "barrier"))
    assert since_before(with_reading(Snapshot(), StacksReading(1, "", now)).stack_views[-1], None, "sglang") == []


async def test_a_long_row_of_a_page_goes_on_below_and_is_copied_whole() -> None:
    async with running(fakes.stuck(), (60, 20)) as (app, _, pilot):
        await pilot.press("v")
        await pilot.pause()
        page = app.screen.lines  # type: ignore[attr-defined]
        words = "word " * 30
        page.show_page([((" label  ", "info"), (words.strip(), ""))])
        await pilot.pause()
        assert "".join(text_of(app).split()).count("word") == 30
        assert page.page_text == f" label  {words.strip()}"
