"""Traces by OpenTelemetry, where the extra ``otel`` is installed and an endpoint is set.

``OTEL_EXPORTER_OTLP_ENDPOINT`` and the other standard variables say where spans go; without it
nothing is loaded and a span costs nothing.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from drivefeed import __version__
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.outbound import Outbound

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_CERTIFICATES = ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")

_state: dict[str, Any] = {"tracer": None, "provider": None}


def configure_tracing(outbound: Outbound | None = None) -> bool:
    """Start to export spans if the environment names an endpoint; tell whether it does.

    Args:
        outbound: proxies and authorities to trust; by default what the environment says.

    Raises:
        NeedsAttention: an endpoint is named and the extra ``otel`` is not installed.
    """
    if not any(os.environ.get(name) for name in ENDPOINT_VARIABLES):
        return False
    if find_spec("opentelemetry.sdk") is None:
        raise NeedsAttention(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and OpenTelemetry is not installed: "
            "install drivefeed[otel] or unset it.",
            reason=Reason.MISCONFIGURED,
        )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {"service.name": "drivefeed", "service.version": __version__}
    provider = TracerProvider(resource=Resource.create(named))
    outbound = outbound or Outbound.from_environment()
    endpoint = next(value for name in ENDPOINT_VARIABLES[::-1] if (value := os.environ.get(name)))
    certificate = next((value for name in _CERTIFICATES if (value := os.environ.get(name))), None)
    exporter = OTLPSpanExporter(
        # Given a file, the exporter overwrites what the session trusts.
        certificate_file=outbound.trusted(certificate),
        session=outbound.session(endpoint),
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _state["provider"] = provider
    _state["tracer"] = provider.get_tracer("drivefeed", __version__)
    return True


def stop_tracing() -> None:
    """Send what is left and export no more; takes as long as the exporter's timeout at most."""
    provider, _state["provider"], _state["tracer"] = _state["provider"], None, None
    if provider is not None:
        provider.shutdown()


@contextmanager
def span(name: str, **attributes: str | int | None) -> Iterator[None]:
    """Time what happens inside as one span; exceptions mark it as failed and go on."""
    tracer = _state["tracer"]
    if tracer is None:
        yield
        return
    known = {f"drivefeed.{key}": value for key, value in attributes.items() if value is not None}
    from opentelemetry.trace import StatusCode

    # What the library would record of an exception by itself is its words, secrets and all.
    with tracer.start_as_current_span(
        name, attributes=known, record_exception=False, set_status_on_exception=False
    ) as one:
        try:
            yield
        except Exception as error:
            one.set_status(StatusCode.ERROR, type(error).__name__)
            raise
