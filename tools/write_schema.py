"""Write ``docs/status.schema.json``, the JSON schema of ``sgmon status --json``, from the types in sgmon/export.

python -m tools.write_schema
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from sgmon.export.json_schema import FailureReport, StatusReport

FILE = Path(__file__).parent.parent / "docs" / "status.schema.json"


def schema() -> bytes:
    """The schema as the bytes of its file. It allows either object: a status, or why there is none."""
    (status, failure), parts = msgspec.json.schema_components(
        (StatusReport, FailureReport), ref_template="#/$defs/{name}"
    )
    body = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sgmon status --json",
        "anyOf": [status, failure],
        "$defs": parts,
    }
    return msgspec.json.format(msgspec.json.encode(body), indent=1) + b"\n"


if __name__ == "__main__":
    FILE.write_bytes(schema())
