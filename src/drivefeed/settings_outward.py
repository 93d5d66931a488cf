"""Settings of what leaves this machine: where documents and notices go, and by which way out."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (pydantic reads it when the class is made)
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from drivefeed.setting_sections import Section

_PUBLIC = r"https://[^/?#@\\\s]+/?"
_LOOPBACK = r"http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?/?"
"""For a look-alike of Graph on this machine; Microsoft calls no http address."""


class ChannelSettings(Section):
    """Where notices go."""

    name: Annotated[str, Field(min_length=1, max_length=80)] = Field(
        description="What commands call this channel."
    )
    kind: Literal["smtp", "teams", "slack", "webhook"] = Field(
        description="smtp, teams (a Workflows webhook), slack or webhook."
    )
    severity: Literal["notice", "warning", "urgent"] = Field(
        default="notice", description="The least that is told: notice, warning or urgent."
    )
    orgs: list[str] = Field(
        default=[],
        description="Only what concerns these organizations; empty for everything.",
    )
    digest_minutes: Annotated[float, Field(ge=0)] = Field(
        default=60.0, description="At most one message in this time, but for urgent notices."
    )
    url: SecretStr | None = Field(
        default=None, description="Where teams, slack and webhook are posted to."
    )
    secret: SecretStr | None = Field(
        default=None, description="webhook: signs what is posted (HMAC-SHA256)."
    )
    host: str = Field(default="", description="smtp: the mail server.")
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=0, description="smtp: its port; 0 for 587 (starttls), 465 (tls) or 25 (none)."
    )
    tls: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="smtp: starttls, tls or none (only for a trusted network)."
    )
    user: str = Field(default="", description="smtp: who signs in; empty for nobody.")
    password: SecretStr | None = Field(default=None, description="smtp: the password.")
    sender: str = Field(default="", alias="from", description="smtp: the address it comes from.")
    to: list[str] = Field(default=[], description="smtp: addresses that it goes to.")

    @model_validator(mode="after")
    def _whole(self) -> ChannelSettings:
        """Say everything that its kind needs and that is not there."""
        if self.kind == "smtp":
            missing = [
                name
                for name, value in (("host", self.host), ("from", self.sender), ("to", self.to))
                if not value
            ]
        else:
            missing = [] if self.url else ["url"]
        if missing:
            raise ValueError(f"the channel '{self.name}' ({self.kind}) needs {', '.join(missing)}")
        if self.user and not self.password:
            raise ValueError(f"the channel '{self.name}' names a user and no password")
        if self.user and self.tls == "none":
            raise ValueError(f"the channel '{self.name}' would send its password without TLS")
        return self


def _named_once(channels: list[ChannelSettings]) -> list[ChannelSettings]:
    """Refuse two channels of one name: what was told by which could not be told apart."""
    names = [one.name.casefold() for one in channels]
    twice = {one.name for one in channels if names.count(one.name.casefold()) > 1}
    if twice:
        raise ValueError(f"there are several channels named {', '.join(sorted(twice))}")
    return channels


Channels = Annotated[list[ChannelSettings], AfterValidator(_named_once)]
"""All channels, each with a name of its own."""


class WatchSettings(Section):
    """What is worth a notice."""

    look_seconds: Annotated[float, Field(ge=1)] = Field(
        default=60.0, description="How often it is looked for trouble."
    )
    missed_rounds: Annotated[int, Field(ge=2)] = Field(
        default=10, description="Intervals without a completed round until a connection fails."
    )
    failed_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        default=20, description="Share of failed files that makes a connection fail."
    )
    failed_floor: Annotated[int, Field(ge=1)] = Field(
        default=10, description="The fewest failed files that make it fail."
    )
    idle_hours: Annotated[float, Field(gt=0)] = Field(
        default=6.0, description="Hours in which files waited and none was imported."
    )
    down_minutes: Annotated[float, Field(gt=0)] = Field(
        default=15.0, description="Minutes that a part is down until it is told."
    )
    throttled_minutes: Annotated[float, Field(gt=0)] = Field(
        default=60.0, description="Minutes in which Microsoft refused every request as too many."
    )


class NotificationSettings(Section):
    """Whether Microsoft tells us of changes, so that they need not wait for the next look.

    Drives are asked anyway, only less often. It needs an address that Microsoft reaches from the
    internet; behind it, nothing but /notifications/ has to be let through to the status page.
    """

    url: Annotated[str, Field(pattern=rf"^({_PUBLIC}|{_LOOPBACK})?$")] = Field(
        default="",
        description="https:// and the host under which Microsoft reaches us; empty for polling "
        "alone.",
    )
    lifetime_hours: Annotated[float, Field(ge=1, le=705)] = Field(
        default=72.0, description="For how long one subscription is; it is renewed at half of it."
    )
    poll_seconds: Annotated[float, Field(ge=1, le=86_400)] = Field(
        default=3600.0,
        description="How often a drive is asked anyway while Microsoft tells us of its changes.",
    )
    revisit_seconds: Annotated[float, Field(ge=0, le=600)] = Field(
        default=45.0,
        description="After a word the drive is asked at once, and after this time again: what "
        "delta shows lags behind.",
    )
    silence_seconds: Annotated[float, Field(ge=1, le=86_400)] = Field(
        default=600.0,
        description="A change that was found, and not told of for so long, shows that the "
        "subscription is dead; Microsoft tells within five minutes.",
    )


class OutboundSettings(Section):
    """The way out of this machine, for all clients."""

    http_proxy: SecretStr | None = Field(
        default=None, description="Proxy for http URLs; empty for HTTP_PROXY or ALL_PROXY."
    )
    https_proxy: SecretStr | None = Field(
        default=None, description="Proxy for https URLs; empty for HTTPS_PROXY or ALL_PROXY."
    )
    no_proxy: str = Field(
        default="", description="Hosts reached directly, with commas; empty for NO_PROXY."
    )
    ca_file: Path | None = Field(
        default=None, description="PEM file with certificates to trust too, everywhere."
    )
    company: Annotated[str, Field(pattern=r"^([!-{}~][ -{}~]{0,59})?$")] = Field(
        default="",
        description="Whose traffic this is, named to Microsoft with each request; empty for "
        "drivefeed.",
    )
    download_hosts: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]+$")]] = Field(
        default=[],
        description="Hosts that may send files besides Microsoft's, each with all below it.",
    )
