"""The evidence bundle: one zip for a bug report, secrets masked, at most 5 MB."""

from sgmon.bundle.archive import MOST_BYTES, Bundle, pack
from sgmon.bundle.collect import Materials, collect

__all__ = ["MOST_BYTES", "Bundle", "Materials", "collect", "pack"]
