"""What sgmon can see here, how to see more, and what would spoil a start. Looks only; changes nothing."""

from sgmon.doctor.check import Check
from sgmon.doctor.seeing import seeing
from sgmon.doctor.server import server_checks
from sgmon.doctor.starting import starting

__all__ = ["Check", "seeing", "server_checks", "starting"]
