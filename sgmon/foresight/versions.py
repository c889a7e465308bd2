"""Versions and combinations that are known to spoil such a start; the reports are the family's data."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doomed, doubt, fine
from sgmon.model.preflight import Forecast
from sgmon.model.verdict import NextStep
from sgmon.servers.start_rules import Beside, Defect
from sgmon.text import quoted
from sgmon.versions import release

_TRUE = ("1", "true", "yes", "y", "on")


def known_defects(start: Start) -> Iterator[Forecast]:
    """Reports of this version that apply to these arguments and packages. A report is of one machine: a doubt."""
    version = release(start.version)
    if version is None:
        return
    for bad in start.family.start.defects:
        if bad.first <= version <= bad.last and bad.applies(start.args) and _beside(start, bad):
            yield doubt("version", f"version {start.version}", f"{bad.text} ({bad.report})", NextStep(bad.advice))


def _beside(start: Start, bad: Defect) -> bool:
    """Whether all packages that it names are here in these versions."""
    return all(any(_is_one(start, name, one) for name in one.names) for one in bad.beside)


def _is_one(start: Start, name: str, one: Beside) -> bool:
    found = release(start.facts.installed.package(name))
    return found is not None and one.first <= found <= one.last


def demands(start: Start) -> Iterator[Forecast]:
    """The packages are as new as this version asks for when it starts. Some are for certain backends alone."""
    rules, installed = start.family.start, start.facts.installed
    if start.on_cpu or start.facts.variable(rules.no_demands).lower() in _TRUE:
        return
    for name, wanted in installed.demands:
        here, least = release(installed.package(name)), release(wanted)
        if here is None or least is None:
            continue
        text = f"{name} {installed.package(name)} is installed, {start.family.label} asks for {wanted} or newer"
        step = NextStep("Install it", f"pip install {quoted(f'{name}>={wanted}')}")
        # without an environment it is not known whether that check is switched off
        if here >= least:
            yield fine("package", name, f"{installed.package(name)} (at least {wanted})")
        elif name in rules.always_demanded and installed.cuda and not start.facts.missing:
            why = "the installed version compares these numbers before it starts a rank, and refuses an older one"
            yield doomed("package", name, text, why, start.phase("arguments"), step)
        else:
            yield doubt("package", name, text, step)


def flashinfer(start: Start) -> Iterator[Forecast]:
    """flashinfer and its kernels are of one release: else it refuses to be imported
    (https://github.com/flashinfer-ai/flashinfer/issues/3044). Whether this start imports it is not known."""
    code, kernels = (start.facts.installed.package(f"flashinfer-{part}") for part in ("python", "cubin"))
    if start.on_cpu or not code or not kernels or start.facts.variable("FLASHINFER_DISABLE_VERSION_CHECK") == "1":
        return
    if code.partition("+")[0] != kernels.partition("+")[0]:
        report = "https://github.com/flashinfer-ai/flashinfer/issues/3044"
        text = (
            f"flashinfer-cubin {kernels} does not fit flashinfer-python {code}: it refuses to be imported ({report})"
        )
        step = NextStep(
            "Install the same version of both", f"pip install {quoted('flashinfer-cubin==' + code.partition('+')[0])}"
        )
        yield doubt("package", "flashinfer", text, step)
