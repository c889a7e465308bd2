"""The simulated server as the main program of a container: what it prints is the container's output.

usage: python -m tests.logs.in_container SCENARIO TP PORT SPEED
"""

from __future__ import annotations

import os
import sys

from sgmon.demo import starter
from sgmon.demo.files import write_play
from sgmon.demo.launch import launcher_command, launcher_environment


def main(scenario: str, tp: str, port: str, speed: str) -> None:
    play = starter._make_play(scenario, int(tp), "0.5.23", float(speed), int(port), None)
    write_play(play)
    os.chdir(play.directory)
    command = launcher_command(play)
    os.execve(command[0], command, launcher_environment(play))


if __name__ == "__main__":
    main(*sys.argv[1:])
