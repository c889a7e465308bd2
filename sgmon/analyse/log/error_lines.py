"""Error lines of one start outside of tracebacks: what each stands for beside the cause that it may be."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from sgmon.analyse.log.candidates import CONSEQUENCE, NOTICE
from sgmon.analyse.log.catalogue import Rule
from sgmon.analyse.log.errors import Errors
from sgmon.analyse.log.first_cause import fatal
from sgmon.analyse.log.prefix import Origin
from sgmon.analyse.log.ranks import Milestones
from sgmon.analyse.log.records import exception_name
from sgmon.model.log import Milestone

#: error lines that are kept: the first ones
NOTED = 4_000


class ErrorLines(Struct):
    """Accumulates. errors, milestones: the start's own. pseudo: what stands where a milestone is not in the text."""

    errors: Errors
    milestones: Milestones
    pseudo: list[Milestone] = field(default_factory=list)
    bind_error_line: int | None = None
    unhealthy_line: int | None = None
    sigterm_line: int | None = None
    unasked: tuple[int, str, Rule, float | None] | None = None  # what is an error if a shutdown follows

    @property
    def is_unhealthy(self) -> bool:
        """Whether a health check has failed, and nothing has been served since."""
        return self.unhealthy_line is not None

    def copy(self, errors: Errors, milestones: Milestones) -> ErrorLines:
        """errors, milestones: the copy's own."""
        return replace(self, errors=errors, milestones=milestones, pseudo=list(self.pseudo))

    def take(self, rule: Rule, number: int, text: str, body: str, where: Origin, seen_t: float | None) -> bool:
        """Note an error line; whether it is the server's, not one of a request."""
        if rule.name == "health_check_failed":
            self.unhealthy_line = number
        if rule.name == "port_in_use" and "attempting to bind" in body:
            self.bind_error_line = self.bind_error_line or number
        if self.milestones.ready_line is not None and rule.in_block and where.source == "":
            return False  # an exception of a request
        rank = where.rank if not where.rank_inferred else ""
        self.errors.single(number, text, rank, rule, seen_t)
        if rule.closeness == NOTICE:
            return True
        name = "error" if rule.closeness == CONSEQUENCE or rule.name == "killed_sigkill" else "exception"
        if rule.name == "tcpstore_lost":
            name = "store_lost"
        event = "raised" if exception_name(body) and where.source == "own" else "error"
        if len(self.pseudo) < NOTED:
            self.pseudo.append(Milestone(name, event, "", number, rank, where.t, seen_t))
        return True

    def shut_down(self, number: int) -> None:
        """The server shuts down: what would be noise without it is an error where nothing else is."""
        if self.sigterm_line is None and self.unasked is not None and fatal(self.errors) is None:
            line, text, rule, seen_t = self.unasked
            self.errors.single(line, text, "", rule, seen_t)
        self.sigterm_line = self.sigterm_line or number
