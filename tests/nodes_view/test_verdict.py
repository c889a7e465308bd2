"""One verdict over several nodes, in made-up situations: which node, which rank, and when it is said."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sgmon.model import Event, RankState, Role
from tests.nodes_view.cluster import Cluster

TIME_ZONE_S = 9 * 3600.0


def loading(**more: object) -> Cluster:
    """Every rank reads its weights."""
    cluster = Cluster(**more).to("weights")  # type: ignore[arg-type]
    for world in cluster.worlds.values():
        for rank in world.ranks:
            rank.does(cpu=0.5, read=5e7)
    return cluster.run(5)


def all_wait(cluster: Cluster, but: str = "") -> None:
    for world in cluster.worlds.values():
        for rank in world.ranks:
            if rank.name == but:
                rank.idle()
            else:
                rank.gloo_wait()


def dumps(cluster: Cluster, culprit: str) -> None:
    load = "load_weights@sglang/srt/model_loader/loader.py"
    for world in cluster.worlds.values():
        for rank in world.ranks:
            at = "take_lock_twice@x.py" if rank.name == culprit else "barrier@torch/distributed/distributed_c10d.py"
            world.dump(rank.name, at, load)


@pytest.mark.parametrize("offset", [0.0, 100.0, -100.0, TIME_ZONE_S], ids=["same", "ahead", "behind", "zone"])
def test_a_rank_that_makes_no_progress_is_named_with_its_node(offset: float) -> None:
    cluster = loading(offsets=(0.0, offset))
    all_wait(cluster, but="TP3")
    dumps(cluster, "TP3")
    cluster.run(40)
    verdict = cluster.verdict
    assert (verdict.state, verdict.odd_ranks, verdict.nodes) == ("stalled", ("TP3",), ("node-b",))
    assert verdict.headline == (
        "node-b: TP3 is missing from the collective (stuck in take_lock_twice) in the weight load; "
        "3 other ranks wait for it"
    )
    stalled = cluster.since("stalled", 5.0)
    assert stalled is not None and 29 <= stalled <= 32


def test_ranks_of_all_nodes_are_in_one_order() -> None:
    cluster = loading(nodes=3, per_node=4)
    ranks = cluster.snapshot.ranks
    assert [rank.name for rank in ranks] == [f"TP{i}" for i in range(12)]
    assert [rank.node for rank in ranks] == ["node-a"] * 4 + ["node-b"] * 4 + ["node-c"] * 4
    assert cluster.states() == ["waiting", "progressing"]


def test_a_paused_rank_and_the_node_on_which_it_is_resumed() -> None:
    cluster = loading()
    all_wait(cluster)
    cluster["node-b"]["TP2"].does(state="T")
    cluster.run(9)
    assert (cluster.since("stopped", 5.0) or 9.0) <= 1.5
    assert cluster.verdict.headline.startswith("node-b: TP2 is paused (SIGSTOP) in the weight load")
    assert cluster.verdict.headline.endswith("2 ranks on node-a wait too")
    assert cluster.verdict.next[0].text == "Resume it, on node-b"


def test_a_killed_rank() -> None:
    cluster = loading()
    cluster["node-b"]["TP3"].does(gone=True, exit_signal=9)
    cluster.run(4)
    assert cluster.verdict.state == "crashed"
    assert cluster.verdict.headline.startswith("node-b: TP3 (pid 102) was killed by SIGKILL in the weight load")
    assert (cluster.verdict.odd_ranks, cluster.verdict.nodes) == (("TP3",), ("node-b",))


def _killed_on_both(apart_s: float, error_s: float | None) -> Cluster:
    cluster = loading(error_s=error_s)
    t = cluster.t + 1.0
    cluster["node-b"]["TP3"].does(gone=True, exit_signal=9, exit_t=t)
    cluster.run(1 + apart_s)
    cluster["node-a"]["TP0"].does(gone=True, exit_signal=9, exit_t=t + apart_s)
    return cluster.run(6)


def test_the_node_that_crashed_first_takes_the_other_with_it() -> None:
    verdict = _killed_on_both(4.0, error_s=0.01).verdict
    assert verdict.headline.startswith("node-b: TP3 (pid 102) was killed by SIGKILL")
    assert verdict.nodes == ("node-b",)
    assert any("node-a fell 4.0s later" in fact.text for fact in verdict.evidence)


@pytest.mark.parametrize("error_s", [2.5, None], ids=["measured badly", "not measured"])
def test_two_crashes_closer_than_the_clocks_are_known_have_no_first(error_s: float | None) -> None:
    verdict = _killed_on_both(1.0, error_s).verdict
    assert verdict.state == "crashed"
    assert verdict.headline == "node-b and node-a crashed within 1.0s; which first is not known"
    assert verdict.nodes == ("node-b", "node-a")


def test_a_node_without_a_server_then_late_then_ready() -> None:
    cluster = Cluster(started=(True, False))
    cluster["node-a"].to("dist_init")
    for rank in cluster["node-a"].ranks:
        rank.store_wait()
    cluster.run(20)
    assert cluster.verdict.state == "waiting-by-design"
    assert cluster.verdict.headline == "node-b: no server runs there yet; 2 ranks on node-a wait"
    cluster.begin("node-b")
    for rank in cluster["node-b"].ranks:
        rank.does(role=Role.IMPORTING, cpu=0.9, read=1e7, rchar=1e7)
    cluster.run(10)
    assert cluster.verdict.state == "progressing"
    assert cluster.verdict.headline == (
        "node-b: TP2-3 have not joined (TP2-3 import their modules); 2 ranks on node-a wait"
    )
    for rank in cluster["node-b"].ranks:
        rank.does(role=Role.WORKER)
    cluster["node-b"].to("weights")
    cluster["node-a"].everywhere("Load weight begin. avail mem=130.00 GB")
    cluster.run(3)
    assert cluster.verdict.state == "progressing" and "joined" not in cluster.verdict.headline
    cluster["node-a"].log("The server is fired up and ready to roll!")
    cluster["node-a"].answers(200)
    cluster.run(4)
    assert (cluster.verdict.state, cluster.states().count("ready")) == ("ready", 1)
    assert not {"suspect", "stalled", "crashed", "stopped", "unknown"} & set(cluster.states())


def test_a_node_that_never_comes_is_late_after_five_minutes() -> None:
    cluster = Cluster(started=(True, False), gpu=False)
    cluster["node-a"].to("dist_init")
    for rank in cluster["node-a"].ranks:
        rank.store_wait()
    cluster.run(320)
    assert cluster.verdict.state == "stalled"
    assert cluster.verdict.nodes == ("node-b",)
    assert 299 <= (cluster.since("stalled", 0.0) or 0.0) <= 312


def test_a_node_that_was_never_heard() -> None:
    cluster = Cluster(nodes=3)
    cluster.forget("node-c")
    for name in ("node-a", "node-b"):
        cluster[name].to("dist_init")
        for rank in cluster[name].ranks:
            rank.store_wait()
    cluster.run(25)
    assert cluster.verdict.headline.startswith("node-c: no word yet (its link or the host)")
    assert cluster.verdict.headline.endswith("4 ranks on node-a and node-b wait")


def test_nodes_that_wait_for_each_other_do_not_meet() -> None:
    cluster = Cluster()
    args = replace(cluster["node-b"].args, dist_init_addr="10.0.0.2:20000")
    cluster["node-b"].args = args
    cluster.begin("node-b")  # the address is another one
    cluster.to("dist_init")
    for world in cluster.worlds.values():
        for rank in world.ranks:
            rank.store_wait()
    cluster.run(25)
    assert "do not meet" in cluster.verdict.headline
    assert set(cluster.verdict.nodes) == {"node-a", "node-b"}


def _servers_of_their_own(**second: object) -> Cluster:
    """Two nodes whose servers do not say that they are one."""
    cluster = Cluster()
    for index, name in enumerate(cluster.names):
        more = second if index else {}
        cluster[name].args = replace(cluster[name].args, nnodes=1, node_rank=0, tp=2, **more)  # type: ignore[arg-type]
        cluster.begin(name)
        cluster[name].to("weights")
    return cluster.run(3)


def test_of_servers_of_their_own_all_must_be_ready() -> None:
    cluster = _servers_of_their_own()
    for name in ("node-a", "node-b"):
        assert cluster.verdict.state != "ready"
        cluster[name].log("The server is fired up and ready to roll!")
        cluster[name].answers(200)
        cluster.run(4)
    assert cluster.verdict.headline == "the servers on node-a and node-b are ready"


def test_of_servers_of_their_own_one_that_makes_no_progress_is_named() -> None:
    cluster = _servers_of_their_own()
    for rank in cluster["node-a"].ranks:
        rank.does(cpu=0.5, read=5e7)
    for rank in cluster["node-b"].ranks:
        rank.gloo_wait()
    cluster.run(45)
    assert cluster.verdict.state == "stalled" and cluster.verdict.nodes == ("node-b",)
    assert cluster.verdict.headline.startswith("node-b: no activity in the weight load, on any of 2 ranks")


def test_a_headless_node_has_no_ready_line_of_its_own() -> None:
    cluster = _servers_of_their_own(headless=True)
    cluster["node-a"].log("The server is fired up and ready to roll!")
    cluster["node-a"].answers(200)
    cluster.run(4)
    assert cluster.verdict.state == "ready" and cluster.verdict.headline.startswith("node-a: ")


def test_stacks_of_all_nodes_are_merged() -> None:
    cluster = loading()
    dumps(cluster, "TP3")
    cluster.run(1)
    (view,) = cluster.snapshot.stack_views
    assert [(found.ranks, found.outlier) for found in view.classes] == [
        (("TP3",), True),
        (("TP0", "TP1", "TP2"), False),
    ]
    assert {dump.rank for dump in cluster.snapshot.stacks} == {"TP0", "TP1", "TP2", "TP3"}
    assert len(cluster.snapshot.of_node("node-b").stack_views[0].classes) == 2


def test_stacks_of_servers_of_their_own_name_the_node() -> None:
    cluster = _servers_of_their_own()
    for name in cluster.names:
        cluster[name].ranks[0].name = ""  # both have one rank, and it has no name
        cluster[name].dump("", "barrier@torch/distributed/distributed_c10d.py")
    cluster.run(1)
    assert {dump.rank for dump in cluster.snapshot.stacks} == {"node-a", "node-b"}


class TestSilence:
    """A node whose link is cut."""

    def test_it_is_unknown_and_the_rest_goes_on(self) -> None:
        cluster = loading()
        cluster.cut_link("node-b")
        cluster.run(12)
        assert cluster.verdict.state == "progressing"
        assert any("node-b: no word for 10s" in fact.text for fact in cluster.verdict.evidence)
        states = {rank.name: rank.state for rank in cluster.snapshot.ranks}
        assert states["TP2"] is RankState.UNKNOWN and states["TP0"] is not RankState.UNKNOWN

    def test_what_the_transport_says_is_shown_at_once(self) -> None:
        cluster = loading()
        cluster.cut_link("node-b", "lost", "ssh: connection reset")
        cluster.run(2)
        assert any("no word for 2s: ssh: connection reset" in fact.text for fact in cluster.verdict.evidence)

    def test_others_that_wait_are_no_stall(self) -> None:
        cluster = loading()
        cluster.cut_link("node-b")
        all_wait(cluster)
        cluster.run(120)
        assert (cluster.verdict.state, cluster.verdict.rule) == ("unknown", "node-silent")
        assert cluster.verdict.headline.startswith("node-b: no word for 2m")
        assert cluster.verdict.next[0].text == "See whether node-b answers, and whether it runs"
        assert not {"stalled", "suspect", "stopped", "crashed"} & set(cluster.states())

    def test_it_comes_back(self) -> None:
        cluster = loading()
        cluster.cut_link("node-b")
        cluster.run(30)
        cluster.mend_link("node-b")
        cluster.run(3)
        assert cluster.verdict.state == "progressing"
        assert not any("no word" in fact.text for fact in cluster.verdict.evidence)
        assert all(rank.state is not RankState.UNKNOWN for rank in cluster.snapshot.ranks)

    def test_a_ready_server_stays_ready(self) -> None:
        cluster = loading()
        cluster["node-a"].log("The server is fired up and ready to roll!")
        cluster["node-a"].answers(200)
        cluster.run(4)
        sure = cluster.verdict.confidence
        cluster.cut_link("node-b")
        cluster.run(20)
        assert cluster.verdict.state == "ready" and cluster.verdict.confidence < sure

    def test_the_only_word_of_all_is_lost(self) -> None:
        cluster = loading()
        cluster.cut_link("node-a")
        cluster.cut_link("node-b")
        for _ in range(40):
            cluster.t += 0.5
            cluster.store.step(Event(cluster.t, "tick"))
        assert cluster.verdict.state == "unknown"
        assert cluster.verdict.headline.startswith("node-a and node-b: no word for ")


def test_versions_and_flags_that_differ_are_named_where_it_matters() -> None:
    cluster = Cluster()
    args = cluster["node-b"].args
    cluster["node-b"].args = replace(args, raw=(*args.raw, ("kv_cache_dtype", "fp8_e5m2")))
    cluster.begin("node-b")
    cluster.run(2)
    rows = {row.name: row for row in cluster.snapshot.compared}
    assert rows["kv_cache_dtype"].differs and rows["kv_cache_dtype"].values == ("", "fp8_e5m2")
    assert not rows["node_rank"].differs and rows["node_rank"].values == ("0", "1")
    assert cluster.snapshot.compared[0].name == "kv_cache_dtype"
    cluster["node-b"].ranks[0].does(gone=True, exit_signal=9)
    cluster.run(3)
    assert any("kv_cache_dtype not given on node-a, fp8_e5m2 on node-b" in f.text for f in cluster.verdict.evidence)
