"""RAS answers as a real NCCL 2.28.9 gave them on two GPUs, read and compared."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from sgmon.analyse.stacks.ras import belongs, compared, culprits, words
from sgmon.analyse.stacks.ras_forms import judged, parse, repair
from sgmon.model import Process, Role
from tests.ras.fake import data

ADDRESS = "localhost:28028"


def test_equal_counts() -> None:
    reading = parse(data("equal.json"), ADDRESS)
    assert (reading.answer, reading.version, reading.form) == ("ok", "2.28.9", "json")
    (comm,) = reading.communicators
    assert (comm.status, comm.size, comm.behind, comm.crossed) == ("OK", 2, (), False)
    assert [(r.rank, r.pid, r.gpu) for r in comm.ranks] == [(0, 573, 0), (1, 574, 1)]
    assert dict(comm.ranks[0].counts or ()) == {
        "Broadcast": 0,
        "Reduce": 0,
        "AllGather": 0,
        "ReduceScatter": 0,
        "AllReduce": 50,
    }
    assert culprits(reading) == ()


def test_late_rank_is_the_one_behind() -> None:
    reading = parse(data("late_rank.json"), ADDRESS)
    (comm,) = reading.communicators
    assert (comm.status, comm.operation, comm.behind) == ("MISMATCH", "AllReduce", (1,))
    assert [rank.pid for rank in culprits(reading)] == [574]
    assert any("AllReduce not entered by rank 1 (pid 574, GPU 1" in line for line in words(reading))


def test_two_answers_apart() -> None:
    first, second = parse(data("late_rank.json"), ADDRESS), parse(data("late_rank_12s_on.json"), ADDRESS)
    assert first.unequal_unchanged is None
    stuck = compared(second, first)
    assert stuck.unequal_unchanged is True
    assert "unequal and unchanged" in " ".join(words(stuck))
    (comm,) = second.communicators
    moved = tuple(replace(rank, counts=(("AllReduce", 60 - rank.rank),)) for rank in comm.ranks)
    going = replace(second, communicators=(judged(replace(comm, ranks=moved, status="")),))
    assert compared(going, first).unequal_unchanged is False


def test_broken_json_of_a_missing_rank() -> None:
    text = data("stopped.json")
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    json.loads(repair(text))
    reading = parse(text, ADDRESS)
    (comm,) = reading.communicators
    assert comm.status == "INCOMPLETE"
    missing = comm.ranks[1]
    assert (missing.rank, missing.pid, missing.missing, missing.unresponsive, missing.dead) == (
        1,
        574,
        True,
        True,
        False,
    )
    assert missing.counts is None
    assert [rank.pid for rank in culprits(reading)] == [574]


def test_crossed_collectives_name_nobody() -> None:
    for name in ("crossed.json", "crossed.txt"):
        reading = parse(data(name), ADDRESS)
        assert reading.communicators[0].crossed, name
        assert culprits(reading) == ()
        assert "different collectives" in " ".join(words(reading))


def test_text_form_says_the_same() -> None:
    late = parse(data("late_rank.txt"), ADDRESS)
    assert (late.version, late.form) == ("2.28.9", "text")
    assert [(rank.rank, rank.pid) for rank in culprits(late)] == [(1, 574)]
    assert late.communicators[0].size == 2
    stopped = parse(data("stopped.txt"), ADDRESS)
    assert [(r.pid, r.missing, r.unresponsive) for r in culprits(stopped)] == [(574, True, True)]
    assert parse(data("equal.txt"), ADDRESS).communicators[0].status == "OK"


def test_text_of_many_ranks() -> None:
    """The manual's example: the majority is only counted, the outliers are named."""
    text = """NCCL version 2.24.3 compiled with CUDA 12.4

Communicators... (0.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4         8        32        32   RUNNING  MISMATCH

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  6 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
"""
    (comm,) = parse(text, ADDRESS).communicators
    assert (comm.size, comm.status) == (32, "MISMATCH")
    assert [(rank.rank, rank.pid, rank.counts) for rank in comm.ranks] == [
        (0, 483072, (("collective", 6649),)),
        (2, 483074, (("collective", 6649),)),
    ]


@pytest.mark.parametrize("body", ["", "{", "{]", "hello", '{"communicators": 3}', "[]", "\x00\xff", "{" * 5000])
def test_nonsense_never_raises(body: str) -> None:
    assert parse(body, ADDRESS).answer in ("garbled", "ok")


def test_whose_answer_it_is() -> None:
    reading = parse(data("equal.json"), ADDRESS)
    ours = Process(pid=90573, ppid=1, start_ticks=1, role=Role.WORKER, ns_pid=573)
    assert belongs(reading, [ours]) is True
    assert belongs(reading, [Process(pid=9, ppid=1, start_ticks=1, role=Role.WORKER)]) is False
    assert belongs(parse(data("equal.txt"), ADDRESS), [ours]) is None
