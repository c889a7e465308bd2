"""What the files of the installed package tell: which architectures it knows, and what it checks itself.

Its files are read as text; nothing of it is imported.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sgmon.discovery.inner import Inside
from sgmon.model.preflight import Installed
from sgmon.patterns import regex
from sgmon.servers.family import ServerFamily
from sgmon.text import without_suffix

FILE_BYTES = 1 << 20
#: torch/version.py: "cuda: Optional[str] = '12.8'"; None in a build for CPUs
_CUDA = regex(r"^cuda\b[^=]*= ['\"]([\d.]+)", re.MULTILINE)
#: packages of which combinations are known to fail
PACKAGES = (
    *("torch", "transformers", "flashinfer-python", "flashinfer-cubin"),
    *(f"nvidia-{name}-{cuda}" for name in ("nccl", "cudnn") for cuda in ("cu12", "cu13")),
)
_WORD = regex(r"\w+")


def look(inside: Inside, family: ServerFamily, site_packages: str, architectures: tuple[str, ...]) -> Installed:
    """For the first of ``architectures`` that the package knows. Empty where the package is not found, or lies on a
    mount that may hang."""
    package = f"{site_packages}/{family.package}"
    if not site_packages or not family.start.models or inside.remote(package):
        return Installed()
    known = _models(inside, package, family.start.models, family.start.model_class)
    file = next((known[name] for name in architectures if name in known), "")
    proofs = tuple(
        name for name, path, text in family.start.proofs if text in inside.text(f"{package}/{path}", FILE_BYTES)
    )
    built = _CUDA.search(inside.text(f"{site_packages}/torch/version.py", 1 << 14))
    demands = _demands(inside, package, *family.start.demands)
    return Installed(
        tuple(sorted(known)) or None,
        file,
        _asserts(inside, f"{package}/{family.start.models}/{file}", family.start.heads_assert if file else ""),
        tuple(dict.fromkeys(proofs)),
        built[1] if built is not None else "",
        _packages(inside, site_packages, {*PACKAGES, *(name for name, _ in demands)}),
        demands,
    )


def _demands(inside: Inside, package: str, file: str, pattern: str) -> tuple[tuple[str, str], ...]:
    """(package, least version) that the installed version asks for."""
    if not file:
        return ()
    found = re.finditer(pattern, inside.text(f"{package}/{file}", FILE_BYTES))
    return tuple(dict.fromkeys((_plain(one["name"]), one["version"]) for one in found))


def _packages(inside: Inside, site_packages: str, names: set[str]) -> tuple[tuple[str, str], ...]:
    """(name, version) by the folders "NAME-VERSION.dist-info"; a package that has two of them is left out."""
    found: dict[str, set[str]] = {}
    for folder in inside.listing(site_packages):
        name, dash, version = without_suffix(folder, ".dist-info").partition("-")
        if dash and folder.endswith(".dist-info") and _plain(name) in names:
            found.setdefault(_plain(name), set()).add(version)
    return tuple(sorted((name, min(versions)) for name, versions in found.items() if len(versions) == 1))


def _plain(name: str) -> str:
    """A package's name as PEP 503 spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@lru_cache(maxsize=4)
def _models(inside: Inside, package: str, models: str, model_class: str) -> dict[str, str]:
    """Class -> its file. ``models``: a folder of them, or the one file that lists them all."""
    offers = re.compile(model_class, re.MULTILINE)
    folder, _, file = models.rpartition("/") if models.endswith(".py") else (models, "", "")
    known: dict[str, str] = {}
    for name in [file] if file else inside.listing(f"{package}/{folder}"):
        if name.endswith(".py"):
            for match in offers.finditer(inside.text(f"{package}/{folder}/{name}", FILE_BYTES)):
                known.update(dict.fromkeys(_WORD.findall(match["list"] or match["one"] or ""), name))
    return known


def _asserts(inside: Inside, path: str, pattern: str) -> tuple[str, ...]:
    """The lines of a model's file that demand divisible heads; () without a pattern."""
    found = re.finditer(pattern, inside.text(path, FILE_BYTES)) if pattern else ()
    return tuple(dict.fromkeys(match[0] for match in found))
