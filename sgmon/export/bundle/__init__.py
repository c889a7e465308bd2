"""The evidence bundle: one zip for a bug report, secrets masked, at most 5 MB."""

from sgmon.export.bundle.archive import MOST_BYTES, Bundle, pack
from sgmon.export.bundle.collect import Materials, collect

__all__ = ["MOST_BYTES", "Bundle", "Materials", "collect", "pack"]
