"""Policies as people write them: options read together, all problems told at once. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from drivefeed.domain import amounts
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.model import Policy
from drivefeed.domain.policy_options import BY_NAME, OPTIONS, Option
from drivefeed.domain.policy_values import WrongValue
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_policy(
    written: Mapping[str, Any], *, now: int, base: Policy | None = None
) -> tuple[Policy, dict[str, str]]:
    """Read options on top of a policy.

    Args:
        written: values by option name; as text, or as the types of TOML.
        now: what an age is counted back from, in milliseconds since the epoch.
        base: the policy that holds where nothing is written; the default one if None.

    Returns:
        The policy as far as it could be read, and a sentence for each option that could not.
    """
    base = base or Policy()
    values: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, value in written.items():
        option = BY_NAME.get(name)
        if option is None:
            wrong[name] = f"There is no option '{name}'; there are {', '.join(BY_NAME)}."
            continue
        try:
            values[option.field] = option.read(value)
        except WrongValue:
            wrong[name] = f"{name} is {as_written(value)}; allowed: {option.allowed}."
    if "modified_since" in values:
        at, age = values["modified_since"]
        if age is not None:
            # The same age again is no change: it was counted back when it was set.
            at = base.modified_since if age == base.modified_age_ms else now - age
        values |= {"modified_since": at, "modified_age_ms": age}
    policy = replace(base, **values)
    if not wrong:
        wrong = _together(policy)
    return policy, wrong


def as_written(value: object) -> str:
    """Return a value as people write it in a file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(as_written(one) for one in value) + "]"
    return f"'{value}'"


def _together(policy: Policy) -> dict[str, str]:
    """What is wrong with options that are right one by one."""
    wrong: dict[str, str] = {}
    both = [one for one in policy.include if one in policy.exclude]
    if both:
        wrong["exclude"] = (
            f"exclude and include both name '{both[0]}', so that it could match no file; allowed: "
            "one of the two."
        )
    if policy.interval_ms and policy.grace_ms and policy.interval_ms > policy.grace_ms:
        wrong["interval"] = (
            f"interval is {amounts.duration_words(policy.interval_ms)} and longer than grace "
            f"({amounts.duration_words(policy.grace_ms)}), so that a file that comes back could "
            "be erased before that is seen; allowed: an interval that is no longer than grace."
        )
    return wrong


def policy_of(written: Mapping[str, Any], *, now: int, base: Policy | None = None) -> Policy:
    """Read options on top of a policy; see :func:`read_policy`.

    Raises:
        NeedsAttention: with a sentence for each option that is wrong.
    """
    policy, wrong = read_policy(written, now=now, base=base)
    if wrong:
        raise NeedsAttention(
            "The policy cannot be used:\n" + "\n".join(f"  {one}" for one in wrong.values()),
            reason=Reason.MISCONFIGURED,
        )
    return policy


def declared_policy(written: Mapping[str, Any], *, now: int, known: Policy | None) -> Policy:
    """Read a policy as a file declares it: what is not written is as by default.

    Args:
        known: the policy of the connection, if there is one. An age that it was set with already
            stays counted back from then, and not anew each time the file is read.

    Raises:
        NeedsAttention: with a sentence for each option that is wrong.
    """
    base = Policy()
    if known is not None and "modified_since" in written:
        base = replace(
            base, modified_since=known.modified_since, modified_age_ms=known.modified_age_ms
        )
    return policy_of(written, now=now, base=base)


def policy_words(policy: Policy) -> dict[str, str]:
    """Tell a policy: each option's value in words, in the order of the table."""
    return {option.name: option.show(_value(policy, option)) for option in OPTIONS}


def _value(policy: Policy, option: Option) -> Any:
    if option.name == "modified_since":
        return policy.modified_since, policy.modified_age_ms
    return getattr(policy, option.field)


def differences(before: Policy, after: Policy) -> tuple[tuple[str, str, str], ...]:
    """Tell what is different, option by option: (name, before, after) in words."""
    return tuple(
        (option.name, option.show(_value(before, option)), option.show(_value(after, option)))
        for option in OPTIONS
        if _value(before, option) != _value(after, option)
    )
