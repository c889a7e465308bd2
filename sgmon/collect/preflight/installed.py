"""What the files of the installed package tell: which architectures it knows, and what it checks itself.

Its files are read as text; nothing of it is imported.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sgmon.discovery.inner import Inside
from sgmon.model.preflight import Installed
from sgmon.servers.family import ServerFamily

FILE_BYTES = 1 << 20
#: torch/version.py: "cuda: Optional[str] = '12.8'"; None in a build for CPUs
_CUDA = re.compile(r"^cuda\b[^=]*= ['\"]([\d.]+)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def look(inside: Inside, family: ServerFamily, site_packages: str, architectures: tuple[str, ...]) -> Installed:
    """For the first of ``architectures`` that the package knows. Empty where the package is not found, or lies on a
    mount that may hang."""
    package = f"{site_packages}/{family.package}"
    if not site_packages or not family.start.models or inside.remote(package):
        return Installed()
    known, asserts = _models(
        inside, package, family.start.models, family.start.model_class, family.start.heads_assert
    )
    file = next((known[name] for name in architectures if name in known), "")
    proofs = tuple(
        name for name, path, text in family.start.proofs if text in inside.text(f"{package}/{path}", FILE_BYTES)
    )
    built = _CUDA.search(inside.text(f"{site_packages}/torch/version.py", 1 << 14))
    return Installed(
        tuple(sorted(known)) or None, file, dict(asserts).get(file, ()), proofs, built[1] if built is not None else ""
    )


@lru_cache(maxsize=4)
def _models(
    inside: Inside, package: str, models: str, model_class: str, heads_assert: str
) -> tuple[dict[str, str], tuple[tuple[str, tuple[str, ...]], ...]]:
    """(class -> its file, file -> its asserts)."""
    offers, demands = re.compile(model_class, re.MULTILINE), re.compile(heads_assert)
    known: dict[str, str] = {}
    asserts: list[tuple[str, tuple[str, ...]]] = []
    for name in inside.listing(f"{package}/{models}"):
        if not name.endswith(".py"):
            continue
        text = inside.text(f"{package}/{models}/{name}", FILE_BYTES)
        for match in offers.finditer(text):
            known |= dict.fromkeys(_WORD.findall(match["list"] or match["one"] or ""), name)
        found = tuple(dict.fromkeys(match[0] for match in demands.finditer(text) if match[0]))
        if found:
            asserts.append((name, found))
    return known, tuple(asserts)
