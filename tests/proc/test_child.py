from __future__ import annotations

from sgmon.proc.child import output


def test_output():
    assert output(["printf", "a b"], 10) == b"a b"
    assert output(["false"], 10) is None
    assert output(["/nonexistent/program"], 10) is None
    assert output(["sleep", "60"], 0.05) is None
