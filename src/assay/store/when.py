"""Times as the store keeps them: UTC, to the second, in one form, so that they sort as text."""

import re
from datetime import UTC, datetime, timedelta

from assay.errors import UsageError

_UNITS = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def stamp(moment: datetime) -> str:
    """Return the time as `2026-11-15T05:28:48Z`. A time without a zone is taken as UTC, as in records."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def now() -> str:
    return stamp(datetime.now(UTC))


def parsed(text: str) -> str | None:
    """Return an ISO date or time in the store's form; None if it is neither."""
    try:
        return stamp(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def since(text: str | datetime) -> str:
    """Return the start of a period, given as a time or as how long ago: `2026-11-15`, `2026-11-15T05:00`, `90min`,
    `12h`, `7d`, `2w`."""
    if isinstance(text, datetime):
        return stamp(text)
    if ago := re.fullmatch(r"([0-9]+) ?(s|min|h|d|w)", text.strip()):
        try:
            return stamp(datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
        except (ValueError, OverflowError):
            return stamp(datetime.min)
    if (moment := parsed(text.strip())) is None:
        raise UsageError(
            f"'{text}' is not a time", fix="write 2026-11-15, 2026-11-15T05:00, or how long ago: 90min, 12h, 7d"
        )
    return moment
