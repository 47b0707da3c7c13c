"""The sentences about this week."""

from tests.pipeline.report.given import Given, Rows
from weir.pipeline.report import watch
from weir.pipeline.report.part import Part, span_of


def _notes(rows: Rows, program: str = "smp") -> list[tuple[str, str]]:
    span = span_of(rows, 14)
    assert span is not None
    return [(note.when, note.text) for note in watch.notes(Part(rows, "main", program, span))]


def test_a_quiet_router_has_no_notes() -> None:
    assert _notes(Given(28).rows()) == []
    assert _notes(Given(15, program="ntf", seed=3).rows(), "ntf") == []
    assert _notes(Given(2).rows()) == []


def test_an_incident_is_one_sentence_with_numbers() -> None:
    [(when, text)] = _notes(Given(28, incidents=[range(25 * 24 + 13, 25 * 24 + 16)]).rows())
    assert when == "Fri 2 Oct, 13:00 to 16:00"
    assert text.startswith("INTERNAL errors: 900 an hour instead of 0; ")
    assert "slowest 1 %: " in text and text.endswith("other numbers changed as well.")


def test_missing_hours_are_named() -> None:
    rows = Given(28, gaps=[range(24 * 24, 24 * 24 + 5), range(26 * 24, 26 * 24 + 2), range(40, 60)]).rows()
    [(when, text)] = _notes(rows)
    assert when == "Thu 1 Oct, 00:00 to 05:00"
    assert text == "No data, or too little of it; 7 hours in 2 gaps this week, this one is the longest."


def test_a_redis_that_is_soon_full_comes_first() -> None:
    rows = Given(28, gaps=[range(24 * 24, 24 * 24 + 5)]).rows()
    for row in rows["gold/capacity"]:
        row["redis_max_bytes"] = 4 * 2**30
    first, second = _notes(rows)
    assert first[0].startswith("In 1") or first[0].startswith("In 2")
    assert first[1].startswith("Redis may be full from ")
    assert second[0] == "Thu 1 Oct, 00:00 to 05:00"


def test_drift_and_lost_notifications_are_watched() -> None:
    rows = Given(28).rows()
    hours = [row for row in rows["gold/services"] if row["grain"] == "hour" and row["label"] == "shop"]
    for row in hours[-30:-27]:
        row["drift_diff"] = 60
    for row in [row for row in rows["gold/notifications"] if row["grain"] == "hour"][-30:-27]:
        row["notifications_lost"] = 500
    [(_, text)] = _notes(rows)
    assert "SUBS of shop with drift: 60 an hour instead of 0" in text
    assert "notifications lost: 500 an hour instead of 0" in text.replace("Notifications", "notifications")


def test_what_is_watched() -> None:
    def names(program: str) -> set[str]:
        rows = Given(15, program=program).rows()
        span = span_of(rows, 14)
        assert span is not None
        return {series.name for series in watch.series(Part(rows, "main", program, span)) if len(series.values) > 150}

    smp, ntf = names("smp"), names("ntf")
    assert {"messages sent", "notifications lost", "clients connected", "AUTH errors"} <= smp
    assert "Redis round trip, slowest 1 %" in smp
    assert {"SEND to MSG, slowest 1 %", "delivered to desk", "SUBS of desk with drift"} <= smp
    assert {"notifications received", "pushes failed", "tokens created", "NMSG to push, slowest 1 %"} <= ntf
