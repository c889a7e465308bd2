"""Metrics sent by OTLP over HTTP, through OpenTelemetry's SDK. The only file that imports ``opentelemetry``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from sgmon import __version__
from sgmon.export.fleet.metrics import Metric, metrics
from sgmon.export.fleet.web import Newest

SEND_S = 15.0
TIMEOUT_S = 5.0


class Sender:
    """Sends the metrics each ``SEND_S`` in a thread of its own until ``stop``; a receiver that is away is skipped."""

    def __init__(self, url: str, newest: Newest, *, send_s: float = SEND_S) -> None:
        exporter = OTLPMetricExporter(endpoint=url, timeout=TIMEOUT_S)
        reader = PeriodicExportingMetricReader(
            exporter, export_interval_millis=send_s * 1000, export_timeout_millis=TIMEOUT_S * 1000
        )
        resource = Resource.create({"service.name": "sgmon", "service.version": __version__})
        self._provider = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
        self._meter = self._provider.get_meter("sgmon", __version__)
        self._newest = newest
        self._known: set[str] = set()
        self._made: dict[str, Metric] = {}
        self._meter.create_observable_gauge("sgmon_info", [self._observe_first], description="Version of sgmon.")

    def stop(self) -> None:
        """Send once more and end."""
        self._look()
        self._provider.shutdown(timeout_millis=TIMEOUT_S * 1000)

    def _look(self) -> None:
        """Make the metrics, and a gauge for each name that is new: it is sent from the next round on."""
        snapshot, age_s = self._newest.look()
        self._made = {metric.name: metric for metric in metrics(snapshot, age_s=age_s)}
        for name, metric in self._made.items():
            if name not in self._known and name != "sgmon_info":
                self._known.add(name)
                self._meter.create_observable_gauge(
                    name, [self._observe(name)], unit=metric.unit, description=metric.help
                )

    def _observe_first(self, _: CallbackOptions) -> Iterable[Observation]:
        """Of the first gauge in each round."""
        self._look()
        return self._samples("sgmon_info")

    def _observe(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: self._samples(name)

    def _samples(self, name: str) -> Iterable[Observation]:
        metric = self._made.get(name)
        return () if metric is None else tuple(Observation(value, dict(labels)) for labels, value in metric.samples)
