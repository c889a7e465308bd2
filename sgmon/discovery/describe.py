"""Everything that is told of one server: arguments, version, log, and what could not be found out."""

from __future__ import annotations

from sgmon.discovery import config, inner, logfile, loghead, version
from sgmon.discovery.logtarget import LogTarget
from sgmon.discovery.parents import timeout_above
from sgmon.discovery.servers import Launcher
from sgmon.model import Missing, Server, ServerArgs
from sgmon.model.server import RETITLED
from sgmon.proc.guard import CallGuard, HungError
from sgmon.servers.registry import is_secret_flag
from sgmon.settings import Settings
from sgmon.text import masked_argv

#: how long the files of an installation may keep us waiting
SLOW_S = 2.0
_VERSIONS: CallGuard[version.Version] = CallGuard()


def arguments(root: str, launcher: Launcher) -> tuple[ServerArgs, str]:
    """The arguments and where they were read. A title hides the command line: then the log's line is looked for."""
    inside = inner.of(root, launcher.stat.pid)
    discovery = launcher.family.discovery
    if launcher.launch.tail is not None:
        args = discovery.parse_args(launcher.launch, lambda path: config.read(inside, path))
        file = dict(args.raw).get("config")
        return args, f"command line and {file}" if file else "command line"
    logged = discovery.args_from_log(loghead.read(inside))
    return (ServerArgs(known=False), RETITLED) if logged is None else (logged, "server_args line of the log")


def describe(root: str, launcher: Launcher, settings: Settings, known: Server | None = None) -> Server:
    """The server as it stands now. ``known``, an earlier answer for the same process, spares the slow parts."""
    pid = launcher.stat.pid
    inside = inner.of(root, pid)
    gaps: list[Missing] = []
    if known is None or not known.args.known:
        args, source = arguments(root, launcher)
    else:
        args, source = known.args, known.args_source
    environ = inner.environment(root, pid)
    if known is None or not known.version:
        installed, gap = _version(inside, launcher, environ)
        gaps += [gap] if gap else []
    else:
        installed = version.Version(known.version, known.version_source, known.site_packages)
    log = _log(inside, settings)
    above = timeout_above(root, pid)
    gaps += [log.missing] if log.missing else []
    return Server(
        pid=pid,
        family=launcher.family.name,
        start_ticks=launcher.stat.start_ticks,
        started_epoch=version.started_epoch(root, launcher.stat.start_ticks),
        argv=masked_argv(launcher.argv, is_secret_flag),
        args=args,
        args_source=source,
        version=installed.number,
        version_source=installed.source,
        site_packages=installed.site_packages,
        log_path=log.path,
        log_kind=log.kind,
        log_source=log.source,
        log_command=log.command,
        log_relay=log.relay,
        visible_devices=_visible(environ, known),
        kill_s=above.limit_s if above else None,
        kill_epoch=above.began_epoch if above else None,
        kill_pid=above.pid if above else None,
        simulated_gpus=(environ or {}).get("SGMON_DEMO_GPUS", "") or (known.simulated_gpus if known else ""),
        in_program=launcher.launch.form == "engine",
        missing=tuple(gaps),
    )


def _visible(environ: dict[str, str] | None, known: Server | None) -> str | None:
    """CUDA_VISIBLE_DEVICES. A title blanks the environment, so what was read before that stays."""
    if environ:
        return environ.get("CUDA_VISIBLE_DEVICES")
    return known.visible_devices if known is not None else None


def _version(
    inside: inner.Inside, launcher: Launcher, environ: dict[str, str] | None
) -> tuple[version.Version, Missing | None]:
    key = (inside.root, launcher.stat.pid, launcher.stat.start_ticks)
    try:
        seen = _VERSIONS.run(
            key, lambda: version.find(inside, launcher.family.package, launcher.argv, environ), SLOW_S
        )
    except HungError:
        why = "the files of its Python do not answer"
        return version.Version(), Missing("version", why, "is a network file system hung? Look at: mount, dmesg")
    except (OSError, ValueError) as err:
        return version.Version(), Missing("version", str(err))
    if seen.number:
        return seen, None
    return seen, Missing("version", seen.source, "the version of the newest known log format is assumed")


def _log(inside: inner.Inside, settings: Settings) -> LogTarget:
    if settings.log_command:
        return LogTarget("", "command", "--log-command", command=settings.log_command)
    if settings.log == "-":
        return LogTarget("", "stdin", "--log -")
    if settings.log:
        return LogTarget(settings.log, "file", "--log")
    return logfile.find(inside)
