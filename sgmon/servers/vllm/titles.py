"""Role and rank from the titles that vLLM gives its processes (from 0.10.1; before that none has a title).

"PREFIX::NAME", PREFIX "VLLM" unless VLLM_PROCESS_NAME_PREFIX says otherwise: vllm 0.10.1 ... 0.33.0 utils
(``set_process_title``), v1/engine/core.py, v1/executor/multiproc_executor.py, v1/engine/coordinator.py, v1/utils.py.
A worker is "Worker" while the groups are made and gets its rank before it loads.
"""

from __future__ import annotations

from sgmon.model import Role
from sgmon.patterns import regex

_TITLE = regex(
    r"[^\s:/]+::(?:(?P<worker>Worker)|(?P<engine>(?:DP)?EngineCore)|(?P<controller>DPCoordinator)|(?P<api>ApiServer|APIServer)"
    r"|(?P<ray>RayWorkerWrapper|RayWorkerProc))(?P<ranks>(?:_[A-Z]+\d+|_\d+)*)(?:$|[ .])"
)
_TOKEN = regex(r"_(DP|PP|PCP|TP|DCP)(\d+)")
#: the first 15 bytes of a title, behind the prefix
_COMM = regex(r"::(Worker|(?:DP)?EngineC|DPCoord|APIServ|ApiServ|RayWork)")
_COMM_ROLES = {
    "Worker": Role.WORKER,
    "RayWork": Role.WORKER,
    "EngineC": Role.ENGINE,
    "DPEngineC": Role.ENGINE,
    "DPCoord": Role.CONTROLLER,
    "APIServ": Role.API_SERVER,
    "ApiServ": Role.API_SERVER,
}
_ROLES = {
    "worker": Role.WORKER,
    "ray": Role.WORKER,
    "engine": Role.ENGINE,
    "controller": Role.CONTROLLER,
    "api": Role.API_SERVER,
}


def role_of(argv: tuple[str, ...]) -> Role:
    """The role that the title says; Role.OTHER when it is none of vLLM's."""
    title = _TITLE.match(argv[0]) if argv else None
    return Role.OTHER if title is None else next(_ROLES[name] for name in _ROLES if title[name])


def rank_of(title: str) -> str:
    """The tokens as they stand there, those of expert parallelism left out: "VLLM::Worker_DP0_TP1_EP1" -> "DP0 TP1".

    An engine core has the rank of its replica ("DPEngineCore_1" of 0.10.1 -> "DP1"); an API server has none.
    """
    found = _TITLE.match(title)
    if found is None or found["api"]:
        return ""
    if found["engine"] and found["engine"] != "EngineCore":
        return "DP" + found["ranks"].lstrip("_")
    return " ".join(name + number for name, number in _TOKEN.findall(found["ranks"]))


def role_of_comm(comm: str) -> Role:
    """The role by the first 15 bytes of a title; the rank is cut off there."""
    found = _COMM.search(comm)
    return Role.OTHER if found is None else _COMM_ROLES[found[1]]
