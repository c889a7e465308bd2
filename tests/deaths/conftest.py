"""Every word about made-up servers is kept (``make goldens``)."""

from __future__ import annotations

from tests.diagnosis.every_word import every_word as every_word
