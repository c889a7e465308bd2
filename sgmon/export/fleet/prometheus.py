"""Metrics in the text format of Prometheus and of OpenMetrics. The only file that imports ``prometheus_client``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.exposition import generate_latest as prometheus_text

from sgmon.export.fleet.metrics import Metric


class _Collector:
    def __init__(self, made: Callable[[], tuple[Metric, ...]]) -> None:
        self._made = made

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for metric in self._made():
            names = tuple(name for name, _ in metric.samples[0][0])
            family = GaugeMetricFamily(metric.name, metric.help, labels=names, unit=metric.unit)
            for labels, value in metric.samples:
                family.add_metric([text for _, text in labels], value)
            yield family


def registry_of(made: Callable[[], tuple[Metric, ...]]) -> CollectorRegistry:
    """A registry of nothing but what ``made`` returns at each scrape."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(made))
    return registry


def text(made: Callable[[], tuple[Metric, ...]], accept: str) -> tuple[bytes, str]:
    """(body, content type) as the scraper accepts it: OpenMetrics where it asks for it."""
    encoder, content_type = choose_encoder(accept)
    return encoder(registry_of(made)), content_type


def textfile(made: Callable[[], tuple[Metric, ...]]) -> bytes:
    """The body of a file for node_exporter's textfile collector."""
    return prometheus_text(registry_of(made))
