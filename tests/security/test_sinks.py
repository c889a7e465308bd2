"""Foreign text at every sink: no escape, no control character, no secret, no command of another program."""

from __future__ import annotations

import io
import json
import re
import shlex
import zipfile

import msgspec
import pytest
from msgspec.structs import replace

from sgmon.commands.after import hook_environment, step_summary
from sgmon.commands.narrator import Narrator
from sgmon.export.bundle import pack
from sgmon.export.bundle.collect import Materials
from sgmon.export.fleet.metrics import metrics
from sgmon.export.fleet.prometheus import textfile
from sgmon.export.json import status_report
from sgmon.export.text import as_text, progress_line
from sgmon.model import Role, Snapshot
from tests.diagnosis.test_whose_log import BEGUN, DIED, RANKS, Watch, args_line
from tests.security.poison import HOSTILE, SECRET, assert_harmless, hostile_start, texts_in
from tests.ui.screen import give, rows_of, running
from tui_app.copying import verdict_text
from tui_app.exit_summary import exit_summary

STARTS = (
    "h200x2-never-enters",
    "gpu-tp2-stop-capture",
    "cpu-bad-shard",
    "cpu-port-in-use",
    "vllm-live-shard-missing",
    "cpu-live-unresolved-node1",
)


#: rule of the verdict -> what the log tells, the server's children, other servers that write into it
LOGS: dict[str, tuple[str, list[tuple[Role, str]], tuple[int, ...]]] = {
    "earlier-start": (BEGUN + DIED, [], ()),
    "shared-log": (BEGUN + args_line(31002) + DIED, RANKS, (90,)),
    "crashed": (BEGUN + "llm.service: Main process exited, code=killed, status=9/KILL\n", [], ()),
}


def hostile_log(rule: str) -> Snapshot:
    """The snapshot of a log of which every line has a secret and ``HOSTILE`` at its end."""
    text, children, writers = LOGS[rule]
    watch = Watch(text.replace("\n", f" {SECRET} {HOSTILE}\n"), children, writers)
    if rule == "crashed":
        watch.look()
        watch.change(0, gone=True, state="X", exit_signal=9)
    verdict = watch.look(5.0)
    assert rule in (verdict.rule, verdict.state), verdict
    return replace(watch.store.snapshot, verdict=verdict)


@pytest.fixture(params=[*STARTS, *LOGS])
def hostile(request: pytest.FixtureRequest) -> Snapshot:
    snapshot = hostile_log(request.param) if request.param in LOGS else hostile_start(request.param)
    assert snapshot.server is not None
    arrived = repr(snapshot.procs) + repr(snapshot.verdict) + repr(snapshot.log)
    assert "sgmon-ran" in arrived or SECRET in arrived, "the poison has not arrived"
    return snapshot


def test_text_and_json(hostile: Snapshot) -> None:
    for line in (*as_text(hostile), progress_line(hostile), *exit_summary(hostile)):
        assert_harmless(line)
        assert "\n" not in line
    for text in texts_in(json.loads(msgspec.json.encode(status_report(hostile)))):
        assert_harmless(text)


def test_every_file_of_a_bundle(hostile: Snapshot) -> None:
    materials = Materials(hostile, log_head="", log_tail=f"one\n{HOSTILE}\n```\n<img src=x>\n", made_by="a test")
    data = pack(materials, name="r", salt="s").data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            assert not name.startswith("/") and ".." not in name
            text = archive.read(name).decode()
            if name.endswith("status.json"):
                for part in texts_in(json.loads(text)):
                    assert_harmless(part)
            elif name.endswith("report.md"):
                assert_harmless(text)
                assert _outside_of_fences(text).count("<script") == 0
                assert "![i](" not in _outside_of_fences(text)
            else:
                for secret in ("hf_Planted", "plantedvalue"):
                    assert secret not in text, name  # the log as it was written, masked


def _outside_of_fences(text: str) -> str:
    """The Markdown that is not in a block of code, without its code spans."""
    outside = "".join(re.split(r"^```.*$", text, flags=re.MULTILINE)[::2])
    return re.sub(r"(`+)(?:(?!`).)+\1", "", re.sub(r"\\[\\`<\[|]", "", outside))


def test_prometheus(hostile: Snapshot) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    text = textfile(lambda: metrics(hostile)).decode()
    assert_harmless(text)
    labels = [
        value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        for value in sample.labels.values()
    ]
    assert labels
    for value in labels:
        assert_harmless(value)
        assert len(value) <= 130


def test_lines_of_a_job_log_give_github_no_command(hostile: Snapshot) -> None:
    """https://docs.github.com/actions/reference/workflow-commands-for-github-actions: "::" begins a command at the
    beginning of a line, "##[" anywhere in it."""
    narrator = Narrator({"GITHUB_ACTIONS": "true"})
    lines = [*narrator.lines(hostile), *narrator.end()]
    told = any(line.startswith(("::error ", "::warning ")) for line in lines)
    assert told or hostile.verdict.state == "unknown"
    for line in lines:
        assert_harmless(line)
        assert "\n" not in line and "##[" not in line
        assert not line.startswith("::") or line.startswith(
            ("::error title=", "::warning title=", "::group::", "::endgr")
        )


def test_the_summary_of_a_step_is_only_text(hostile: Snapshot) -> None:
    for line in step_summary(hostile, 5):
        assert_harmless(line)
        bare = _outside_of_fences(line)
        assert "<script" not in bare and "![i](" not in bare and "\n" not in line


def test_the_environment_of_a_hook(hostile: Snapshot) -> None:
    for name, value in hook_environment(hostile, "/tmp/r.zip").items():
        assert name.startswith("SGMON_") and "\x00" not in value
        value.encode("utf-8", "surrogateescape")
        assert_harmless(value)


def test_what_is_copied(hostile: Snapshot) -> None:
    for line in verdict_text(hostile.verdict).split("\n"):
        assert_harmless(line, secrets=False)


def test_a_next_step_runs_nothing_of_the_servers(hostile: Snapshot) -> None:
    """Whoever pastes a command into a shell runs the command that is shown, with the server's words as arguments."""
    for step in hostile.verdict.next:
        for word in shlex.split(step.command):
            if "touch" in word or "evil" in word:
                assert shlex.quote(word) in step.command, step.command


@pytest.mark.parametrize("keys", ["", "v", "D", "3,enter", "2", "4"])
async def test_the_screen(keys: str) -> None:
    snapshot = hostile_start("h200x2-never-enters")
    async with running(snapshot, (120, 40)) as (app, engine, pilot):
        await pilot.press(*[key for key in keys.split(",") if key])
        await give(engine, pilot, snapshot)
        for row in rows_of(app):
            assert_harmless(row, secrets=False)  # it is the user's own: the log is shown as it was written
        assert app.title == "sgmon"


async def test_the_clipboard(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    snapshot = hostile_start("h200x2-never-enters")
    async with running(snapshot, (120, 40)) as (app, _, pilot):
        for keys in (("c",), ("3", "c"), ("v", "c")):
            await pilot.press(*keys)
            assert app.clipboard
            for line in app.clipboard.split("\n"):
                assert_harmless(line, secrets=False)
            await pilot.press("escape")
