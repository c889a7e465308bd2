import pytest

from sgmon import units


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "?"), (0.44, "0.4s"), (9.96, "10s"), (59.4, "59s"), (252, "4m12s"), (3780, "1h03m"), (90000, "1d01h")],
)
def test_duration(seconds: float | None, shown: str) -> None:
    assert units.duration(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(None, "?"), (0, "0 B"), (512, "512 B"), (4300, "4.2 KiB"), (81604378624, "76.0 GiB"), (5e8, "477 MiB")],
)
def test_size(count: float | None, shown: str) -> None:
    assert units.size(count) == shown


@pytest.mark.parametrize(
    ("ranks", "shown"),
    [
        (("TP0", "TP1", "TP2", "TP5"), "TP0-2,5"),
        (("TP3",), "TP3"),
        (("DP0 TP0", "DP0 TP1", "DP1 TP0"), "DP0 TP0-1 DP1 TP0"),
        (("",), "rank"),
        ((), ""),
    ],
)
def test_rank_list(ranks: tuple[str, ...], shown: str) -> None:
    assert units.rank_list(ranks) == shown
