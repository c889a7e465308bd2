"""Lines of NCCL that are held back: what is read of the log stays the same."""

from __future__ import annotations

from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from sgmon.analyse.log import ranks
from sgmon.analyse.log.repeats import Repeats
from sgmon.analyse.log.run import Run
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


VLLM_START = "(APIServer pid=7) INFO 01-29 13:12:35 [utils.py:253] non-default args: {'model': '/m', 'tensor_parallel_size': 4}\n"
VLLM_LINES = (
    *(
        f"(Worker_TP{n % 3} pid=8{n % 3}) node1:80:8{n} [{n % 3}] NCCL INFO Channel 0{n}/0 : 0[0] -> 1[1] via P2P/IPC\n"
        for n in range(6)
    ),
    *(f"(Worker pid=9{n}) node1:80:81 [{n}] NCCL INFO Connected all rings\n" for n in range(2)),
    "(Worker pid=90) node1:80:81 [0] NCCL INFO Trees [0] -1/-1/-1->0->1\n",
    "(Worker pid=90) \n",
    "(Worker pid=91) INFO 01-29 13:12:36 [parallel_state.py:1422] world_size=4 rank=3 local_rank=3\n",
    "(Worker pid=90) node1:80:81 [1] NCCL WARN Call to connect returned Connection refused\n",
    "(Worker_TP1 pid=81) INFO 01-29 13:12:38 [gpu_model_runner.py:2602] Starting to load model /m...\n",
    "\rLoading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.00s/it]",
    "(Worker_TP1 pid=81) Traceback (most recent call last):\n",
    "(Worker_TP1 pid=81) ValueError: no\n",
    "\n",
    "(APIServer pid=7) INFO:     Application startup complete.\n",
)


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from([(START, LINES), (VLLM_START, VLLM_LINES)]).flatmap(
        lambda log: st.lists(st.sampled_from(log[1]), max_size=40).map(lambda lines: log[0] + "".join(lines))
    ),
    st.lists(st.integers(0, 2000), max_size=4).map(sorted),
    st.booleans(),
)
def test_the_same_is_read_with_and_without_holding_back(text: str, cuts: list[int], few: bool) -> None:
    cuts = [cut for cut in cuts if cut < len(text)]
    with mock.patch.object(ranks, "LIMIT", 4 if few else 100), mock.patch.object(ranks, "WEAK_LIMIT", 2):
        held = fold(text, cuts)
        with mock.patch.object(Repeats, "holds", lambda self, *line: False):
            assert fold(text, cuts) == held


def test_of_thousands_of_lines_few_are_read() -> None:
    text = START + "".join(LINES[n % 6] for n in range(3 * ranks.LIMIT))
    taken = []
    add = ranks.Milestones.add
    with mock.patch.object(ranks.Milestones, "add", lambda self, *words: taken.append(words[1]) or add(self, *words)):
        state = fold(text, [len(text) // 2, len(text) - 200])
    assert len(taken) < ranks.WEAK_LIMIT + 30
    assert {rank.rank: rank.line for rank in state.ranks} == {f"TP{n}": 3 * ranks.LIMIT - 1 + n for n in range(3)}


def test_of_lines_with_a_name_before_them_few_are_read_too() -> None:
    text = VLLM_START + "".join(VLLM_LINES[n % 3] for n in range(3 * ranks.LIMIT))
    read = []
    line = Run.line
    with mock.patch.object(
        Run, "line", lambda self, *words, **more: read.append(words[0]) or line(self, *words, **more)
    ):
        state = fold(text, [len(text) // 2, len(text) - 400])
    assert len(read) < ranks.WEAK_LIMIT * 3
    assert {rank.rank: rank.line for rank in state.ranks} == {f"TP{n}": 3 * ranks.LIMIT - 1 + n for n in range(3)}
