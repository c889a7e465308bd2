"""The logs of several nodes as one text: order, node and time of each line."""

from __future__ import annotations

import random

import pytest

from sgmon.analyse.log.nodes_index import NodesLogIndex
from sgmon.model import LogReading

HOUR_S = 3600.0


def line(second: int, words: str, rank: str = "TP0", *, zone_s: float = 0.0) -> str:
    clock = 10 * 3600 + second + round(zone_s)
    return f"[2026-11-29 {clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02} {rank}] {words}\n"


def zero(zone_s: float = 0.0) -> float:
    """What a clock shows at watch second 0: ten o'clock."""
    from sgmon.analyse.log.prefix import epoch

    found = epoch("2026-11-29 10:00:00")
    assert found is not None
    return found + zone_s


def texts(index: NodesLogIndex) -> list[tuple[str, str]]:
    found = [entry for block in range(index.blocks) for entry in index.block(block)]
    return [(one.node, one.text.partition("] ")[2]) for _, one in found]


def test_lines_of_two_nodes_are_in_the_order_of_time_whatever_their_clocks_show() -> None:
    index = NodesLogIndex(epoch=zero())
    for second in range(1, 20):
        index.follow_node(LogReading("/a.log", text=line(second, f"a{second}")), "node-a", second + 0.2, zero())
        late = line(second, f"b{second}", "TP1", zone_s=2 * HOUR_S)
        index.follow_node(LogReading("/b.log", text=late), "node-b", second + 0.6, zero(2 * HOUR_S))
        index.settle(second + 0.75)
    index.settle(30.0)
    expected = [(node, f"{node[-1]}{second}") for second in range(1, 20) for node in ("node-a", "node-b")]
    assert texts(index) == expected
    found = [one for block in range(index.blocks) for _, one in index.block(block)]
    times = [one.t for one in found if one.t is not None]
    assert times == sorted(times) and times[0] == zero() + 1


def test_text_that_comes_later_and_is_older_is_put_where_it_belongs() -> None:
    index = NodesLogIndex(epoch=zero())
    whole = "".join(line(second, f"a{second}") for second in range(0, 60, 2))
    index.follow_node(LogReading("/a.log", text=whole, age_s=1.0), "node-a", 61.0, zero())
    index.settle(62.0)
    generation = index.generation
    other = [line(second, f"b{second}", "TP1") + "  undated\n" for second in range(1, 60, 2)]
    for piece in ("".join(other[:15]), "".join(other[15:])):
        index.follow_node(LogReading("/b.log", text=piece, age_s=1.0), "node-b", 63.0, zero())
    index.settle(64.0)
    index.settle(70.0)
    assert index.generation > generation  # earlier offsets mean nothing any more
    words = [text for _, text in texts(index) if text]
    assert words == [f"{'ab'[second % 2]}{second}" for second in range(60)]


def test_a_line_of_one_node_is_found_by_its_own_number() -> None:
    index = NodesLogIndex(epoch=zero())
    for second in range(1, 400):
        node = "node-a" if second % 3 else "node-b"
        index.follow_node(LogReading(f"/{node}", text=line(second, f"s{second}")), node, second + 0.2, zero())
        index.settle(second + 0.5)
    index.settle(500.0)
    offset = index.offset_of(100, "node-b")
    assert offset is not None
    at = dict(entry for block in range(index.blocks) for entry in index.block(block))
    assert at[offset].text.endswith("s300") and at[offset].node == "node-b"


@pytest.mark.parametrize("seed", range(5))
def test_each_node_keeps_its_own_order_and_loses_nothing(seed: int) -> None:
    dice = random.Random(seed)
    index = NodesLogIndex(epoch=zero())
    told: dict[str, str] = {"node-a": "", "node-b": "", "node-c": ""}
    t = 0.0
    for number in range(300):
        t += dice.random()
        node = dice.choice(list(told))
        stamped = dice.random() < 0.6
        text = line(max(0, int(t - dice.random() * 3)), f"x{number}") if stamped else f"bare x{number}\n"
        cut = dice.randrange(len(text))
        told[node] += text
        for piece in (text[:cut], text[cut:]):
            index.follow_node(LogReading(f"/{node}", text=piece), node, t, zero())
        index.settle(t)
    index.settle(t + 30)
    index.settle(t + 60)
    found = [one for block in range(index.blocks) for _, one in index.block(block)]
    for node, text in told.items():
        assert [one.text for one in found if one.node == node] == text.splitlines()
