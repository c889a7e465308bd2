"""Known vulnerabilities of what requirements.lock names: python -m tools.audit. Exit 1 if there is one.

Asks the databases that pip-audit knows. Where none answers that is said, with exit code 0.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements.lock"
SERVICES = ("pypi", "osv")
LIMIT_S = 300


def program() -> list[str] | None:
    """pip-audit: the one that is installed, else one in a folder of its own; None if it cannot be had."""
    found = shutil.which("pip-audit", path=str(Path(sys.executable).parent)) or shutil.which("pip-audit")
    if found:
        return [found]
    folder = Path(tempfile.mkdtemp(prefix="pip-audit-"))
    made = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False)
    got = (
        subprocess.run([str(folder / "bin/pip"), "install", "-q", "pip-audit"], check=False)
        if not made.returncode
        else made
    )
    return [str(folder / "bin/pip-audit")] if got.returncode == 0 else None


def asked(command: list[str], service: str) -> dict[str, object] | str:
    """pip-audit's answer, or why there is none."""
    argv = [
        *command,
        "-r",
        str(LOCK),
        "--disable-pip",
        "--require-hashes",
        "-s",
        service,
        "-f",
        "json",
        "--progress-spinner",
        "off",
    ]
    try:
        run = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer in {LIMIT_S} s"
    try:
        return dict(json.loads(run.stdout))
    except ValueError:
        return (run.stderr.strip().splitlines() or ["no answer"])[-1][:300]


def judged(answer: dict[str, object]) -> tuple[list[str], int, int]:
    """(vulnerabilities in words, packages that were looked up, packages that the database does not know)."""
    packages = answer.get("dependencies")
    rows = packages if isinstance(packages, list) else []
    known = [row for row in rows if "skip_reason" not in row]
    found = [
        f"{row['name']} {row.get('version', '?')}: {one['id']}, mended in {one['fix_versions'] or 'no version'}"
        for row in known
        for one in row.get("vulns", ())
    ]
    return found, len(known), len(rows) - len(known)


def main() -> int:
    command = program()
    if command is None:
        print("audit: not asked, pip-audit cannot be installed here")
        return 0
    for service in SERVICES:
        answer = asked(command, service)
        if isinstance(answer, str):
            print(f"audit: {service} could not be asked: {answer}")
            continue
        found, known, unknown = judged(answer)
        if not known:
            print(f"audit: {service} could not be asked: it knows none of {unknown} packages (a mirror?)")
            continue
        print(
            "\n".join(
                [
                    *found,
                    f"audit: {known} packages asked of {service}, {len(found)} vulnerabilities, {unknown} unknown",
                ]
            )
        )
        return 1 if found else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
