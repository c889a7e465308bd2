"""The model against the installed version: its class, code of its own, its chat template."""

from __future__ import annotations

from collections.abc import Iterator

from sgmon.foresight.start import Start, doomed, doubt, fine, label, unknown
from sgmon.model.preflight import Forecast, Place
from sgmon.model.verdict import NextStep
from sgmon.text import quoted


def architecture(start: Start) -> Iterator[Forecast]:
    """The installed version knows the class of the model, and of its draft. An unknown one may still run by the
    transformers backend."""
    known = start.facts.installed.architectures
    for what, folder in (("architecture", start.facts.model), ("draft's architecture", start.facts.draft)):
        names = str((folder.get("architectures") if folder else "") or "").split(",")
        if folder is None or not names[0]:
            continue
        if known is None:
            yield unknown("architecture", what, f"{names[0]}: the installed version was not looked into")
        elif set(names) & set(known):
            file = f" ({start.facts.installed.model_file})" if folder is start.facts.model else ""
            yield fine("architecture", what, f"{names[0]}{file}")
        else:
            yield _unlisted(start, what, names[0], len(known))


def _unlisted(start: Start, what: str, name: str, count: int) -> Forecast:
    text = f"{name} is none of the {count} architectures of {start.family.label} {start.version}".rstrip()
    step = NextStep(f"Look whether a newer {start.family.label} has it, or start with the transformers backend")
    return doubt("architecture", what, text, step)


def remote_code(start: Start) -> Iterator[Forecast]:
    """A config with ``auto_map`` brings code of its own, which runs only when that is allowed. A class that the
    server has itself needs none of it."""
    for folder in (start.facts.model, start.facts.draft):
        if folder is None or not folder.get("auto_map") or start.options.trust_remote_code:
            continue
        text = f"{label(folder)} brings code of its own (auto_map), and --trust-remote-code is not given"
        yield doubt("remote-code", "remote code", text, NextStep("If the start asks for it: add --trust-remote-code"))


def chat_template(start: Start) -> Iterator[Forecast]:
    """A chat template: the file that the arguments name, else the tokenizer's own. Without one the server starts, and
    chat requests fail or get a guessed one."""
    given, place = start.options.chat_template, start.facts.chat_template
    if place is Place.ABSENT:
        text = f"the chat template is not there: {given}"
        step = NextStep("Name a file that is there, or leave it out", f"ls -l {quoted(given)}")
        serves = start.args.node_rank == 0 and not start.args.headless and not start.options.no_tokenizer
        if serves and "template-file" in start.facts.installed.proofs:
            why = "the installed version refuses a name of a file that it cannot open"
            yield doomed("chat-template", "chat template", text, why, start.phase("template"), step)
        else:
            yield doubt("chat-template", "chat template", text, step)
        return
    folder = start.facts.tokenizer or start.facts.model
    if given:
        yield fine("chat-template", "chat template", given if place is not None else "given in the arguments")
        return
    if folder is None or folder.place is not Place.FOLDER or start.options.no_tokenizer or not folder.names:
        return
    if folder.get("chat_template") or "chat_template.jinja" in folder.names or "chat_template.json" in folder.names:
        yield fine("chat-template", "chat template", "there")
    else:
        yield doubt("chat-template", "chat template", f"{label(folder)} has none: chat requests may fail")
