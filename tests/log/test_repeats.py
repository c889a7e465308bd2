"""Lines of NCCL that are held back: what is read of the log stays the same."""

from __future__ import annotations

from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from sgmon.analyse.log import ranks
from sgmon.analyse.log.repeats import Repeats
from tests.log.loading import fold

START = "[2026-01-29 13:12:36] server_args=ServerArgs(model_path='/m', tp_size=4)\n"
LINES = (
    *(f"node1:80:8{n} [{n % 3}] NCCL INFO Channel 0{n}/0 : 0[0] -> 1[1] via P2P/IPC\n" for n in range(6)),
    *(f"node1:80:81 [{n}] NCCL INFO AllReduce: opCount {n} sendbuff 0x7f\n" for n in range(2)),
    "node1:80:81 [1] NCCL INFO ncclCommInitRank comm 0x2 rank 3 nranks 16 commId 0x4 - Init COMPLETE\n",
    "node1:80:81 [1] NCCL WARN Call to connect returned Connection refused\n",
    "[2026-01-29 13:12:37 TP1] node1:80:81 [2] NCCL INFO Trees [0] -1/-1/-1->0->1\n",
    "node2:80:81 [1] NCCL INFO Connected all rings\n",
    "[2026-01-29 13:12:38 TP1] Load weight begin. avail mem=1.0 GB\n",
    "[2026-01-29 13:12:39 TP1] Load weight end. elapsed=2.0 s, type=X, avail mem=1.0 GB, mem usage=1.00 GB.\n",
    "[2026-01-29 13:12:40] Decode batch, #running-req: 7\n",
    "Traceback (most recent call last):\n",
    '  File "x.py", line 1, in f\n',
    "ValueError: no\n",
    "\n",
    "\r",
    "[2026-01-29 13:14:30] The server is fired up and ready to roll!\n",
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(LINES), max_size=40), st.lists(st.integers(0, 2000), max_size=4).map(sorted))
def test_the_same_is_read_with_and_without_holding_back(lines: list[str], cuts: list[int]) -> None:
    text = START + "".join(lines)
    cuts = [cut for cut in cuts if cut < len(text)]
    with mock.patch.object(ranks, "LIMIT", 4):
        held = fold(text, cuts)
        with mock.patch.object(Repeats, "holds", lambda self, *line: False):
            assert fold(text, cuts) == held


def test_of_thousands_of_lines_few_are_read() -> None:
    text = START + "".join(LINES[n % 6] for n in range(3 * ranks.LIMIT))
    taken = []
    add = ranks.Milestones.add
    with mock.patch.object(ranks.Milestones, "add", lambda self, *words: taken.append(words[1]) or add(self, *words)):
        state = fold(text, [len(text) // 2, len(text) - 200])
    assert len(taken) < ranks.LIMIT + 30
    assert {rank.rank: rank.line for rank in state.ranks} == {f"TP{n}": 3 * ranks.LIMIT - 1 + n for n in range(3)}
