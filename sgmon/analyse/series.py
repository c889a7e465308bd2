"""Short histories of what each GPU does, for the curves of the screen."""

from __future__ import annotations

from msgspec.structs import replace

from sgmon.model import Series, Snapshot

SERIES_POINTS = 300  # as they come; older ones are kept wider apart, so that a history reaches to the first reading
SERIES_STEP_S = 0.9
OLD_POINTS = 180


def with_series(new: Snapshot, t: float) -> Snapshot:
    """With the GPUs of ``new`` as one more point of each history."""
    series = {s.name: s for s in new.series}
    for gpu in new.gpu.gpus:
        values = {"used": gpu.used_bytes, "util": gpu.util_percent, "power": gpu.power_w}
        for what, value in values.items():
            name = f"gpu{gpu.index}.{what}"
            points = series[name].points if name in series else ()
            if points and t - points[-1][0] < SERIES_STEP_S:
                continue
            point = (round(t, 2), None if value is None else float(value))
            series[name] = Series(name, _grown(points, point))
    return replace(new, series=tuple(series.values()))


def _grown(
    points: tuple[tuple[float, float | None], ...], point: tuple[float, float | None]
) -> tuple[tuple[float, float | None], ...]:
    """With one more. A point that leaves the newest ones stays if it is far enough from the old one before it.

    Of twice ``OLD_POINTS`` old ones every second stays.
    """
    if len(points) < SERIES_POINTS:
        return (*points, point)
    cut = len(points) - SERIES_POINTS
    leaving, old = points[cut], points[:cut]
    apart = (old[-1][0] - old[0][0]) / OLD_POINTS if old else 0.0
    if not old or leaving[0] - old[-1][0] >= max(SERIES_STEP_S, apart):
        kept = old if len(old) < 2 * OLD_POINTS else old[::2]
        return (*kept, *points[cut:], point)
    return (*old, *points[cut + 1 :], point)
