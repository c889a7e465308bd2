"""Versions of which a defect is known that spoils such a start; the reports are the family's data."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doubt
from sgmon.model.preflight import Forecast
from sgmon.model.verdict import NextStep
from sgmon.versions import release


def known_defects(start: Start) -> Iterator[Forecast]:
    """Reports of this version that apply to these arguments. A report is of one machine: a doubt."""
    version = release(start.version)
    if version is None:
        return
    for bad in start.family.start.defects:
        if bad.first <= version <= bad.last and bad.applies(start.args):
            yield doubt("version", f"version {start.version}", f"{bad.text} ({bad.report})", NextStep(bad.advice))
