"""Two dumps of a process, taken one after the other, are compared on the stack page."""

from sgmon.model import Frame, Role, Snapshot, StackDump, Thread
from tui_app.stack_history import since_before
from widgets.line import plain


def _dump(t: float, pid: int, rank: str, *functions: str) -> StackDump:
    frames = tuple(Frame(name, "sglang/srt/x.py", 7) for name in functions)
    return StackDump(pid, rank, Role.WORKER, t, threads=(Thread(pid, "MainThread", frames=frames),))


def test_ranks_that_stand_are_told_from_the_one_that_moved() -> None:
    before = (_dump(10.0, 1, "TP0", "barrier", "load_model"), _dump(10.0, 2, "TP1", "read", "load_model"))
    now = (_dump(45.0, 1, "TP0", "barrier", "load_model"), _dump(45.0, 2, "TP1", "repack", "load_model"))
    rows = [plain(row) for row in since_before(Snapshot(t=46.0, stacks=(*before, *now)), now)]
    assert any("TP0: the same frames and lines, 35s apart" in row for row in rows), rows
    assert any("TP1: moved inside load_model, 35s apart" in row for row in rows), rows
    assert any("was in read, is in repack" in row for row in rows), rows


def test_the_first_dump_has_nothing_before_it() -> None:
    now = (_dump(45.0, 1, "TP0", "barrier"), _dump(46.0, 1, "TP0", "barrier"))
    assert since_before(Snapshot(t=46.0, stacks=now), now) == []
