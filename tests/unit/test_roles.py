"""Roles: neutral words in the model, the family's words on the screen, old recordings still read."""

from __future__ import annotations

import msgspec

from sgmon.model import ESSENTIAL_ROLES, ActivityClock, Process, Role, ServerArgs
from sgmon.servers.registry import get, role_label

OLD = b'{"pid":5,"ppid":1,"start_ticks":7,"role":"%s","becomes":"%s"}'


def test_words_of_old_recordings_are_read():
    decoded = msgspec.json.decode(OLD % (b"scheduler", b""), type=Process)
    assert (decoded.role, decoded.becomes) == (Role.WORKER, Role.OTHER)
    decoded = msgspec.json.decode(OLD % (b"importing", b"dp_controller"), type=Process)
    assert (decoded.role, decoded.becomes) == (Role.IMPORTING, Role.CONTROLLER)
    assert (
        msgspec.json.decode(b'{"pid":1,"rank":"","role":"dp_controller","since_t":0}', type=ActivityClock).role
        is Role.CONTROLLER
    )


def test_a_role_of_a_newer_sgmon_is_other():
    assert msgspec.json.decode(OLD % (b"oracle", b""), type=Process).role is Role.OTHER


def test_a_role_is_recorded_as_its_neutral_word():
    assert b'"role":"worker"' in msgspec.json.encode(Process(5, 1, 7, Role.WORKER))


def test_the_family_names_the_roles():
    assert role_label("sglang", Role.WORKER) == "scheduler"
    assert role_label("sglang", Role.CONTROLLER) == "DP controller"
    assert role_label("sglang", Role.RESOURCE_TRACKER) == "resource tracker"
    assert role_label("of a newer sgmon", Role.WORKER) == "worker"


def test_helpers_are_not_essential():
    assert Role.WORKER in ESSENTIAL_ROLES and Role.ENGINE in ESSENTIAL_ROLES
    assert not ESSENTIAL_ROLES & {Role.COMPILER, Role.RESOURCE_TRACKER, Role.OTHER}


def test_a_server_of_a_family_that_is_not_known_here_is_described_in_neutral_words():
    """A recording that a newer sgmon has made."""
    family = get("of a newer sgmon")
    assert family.label == "of a newer sgmon"
    assert family.discovery.recognise(("sglang", "serve", "m")) is None
    assert family.discovery.expected_children(Role.LAUNCHER, ServerArgs(tp=2), "") == ()
