"""SGLang's own waits that are meant: its gate, and weights from a checkpoint engine.

A rule returns a verdict without phase and log: the caller adds both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgmon.model import Evidence, NextStep, Verdict

if TYPE_CHECKING:
    from sgmon.analyse.diagnosis.context import Context

#: the gate prints a line every 10 s
GATE_BEAT_S = 30.0


def gate(context: Context) -> Verdict | None:
    """``--gated-launch-port``: it waits for somebody to activate it."""
    port, log = context.args.gated_launch_port, context.snapshot.log
    done = {milestone.name for milestone in log.milestones}
    between = context.phase == "dist_init" and "dist_init_end" in done
    closed = log.gate_open is False or (log.gate_open is None and port is not None and between)
    if not closed or "load_begin" in done:
        return None
    if context.t - context.log_activity_t > GATE_BEAT_S:
        return None  # its heartbeat has stopped: let the other rules look
    return Verdict(
        "waiting-by-design",
        f"the gate is closed: the start waits for activation on port {port}" if port else "the gate is closed",
        confidence=0.95,
        rule="gate",
        evidence=(Evidence("args", f"started with --gated-launch-port {port}" if port else "the log says so"),),
        next=(NextStep("Activate the gate when the node may load", gate_command(port)),),
    )


def gate_command(port: int | None) -> str:
    """What opens the gate; "" while its port is not known."""
    return f"curl -X POST http://127.0.0.1:{port}/gate/activate" if port else ""


def weights_from_outside(context: Context) -> Verdict | None:
    """Checkpoint engine: the server waits for somebody to push the weights, 120 s by default."""
    if not context.args.wait_weights or context.phase not in ("http", "warmup") or context.was_ready:
        return None
    return Verdict(
        "waiting-by-design",
        "the server waits for weights from the checkpoint engine",
        confidence=0.75,
        rule="checkpoint-engine",
        evidence=(Evidence("args", "started to wait for weights before it is ready"),),
        next=(NextStep("Start the checkpoint engine's update; after 120 s the server goes on without"),),
    )
