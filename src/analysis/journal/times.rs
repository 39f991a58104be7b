//! Times that a run can have.

use jiff::{SignedDuration, Timestamp, civil::date, tz::Offset};

/// By how much a controller's clock may be set during a run, and a report's clock be behind it.
const SLACK: SignedDuration = SignedDuration::from_hours(24);

/// Whether a case began between the start of its run and the line that tells of it.
pub(super) fn within(began: Timestamp, started: Timestamp, told: Timestamp) -> bool {
    began.duration_since(started) <= SLACK && started.duration_since(told) <= SLACK
}

/// Why nobody can have written something at this time, by a clock that says `now`: a trend leaves such runs out by the same rule.
pub(super) fn wrong(written: Timestamp, now: Timestamp) -> Option<String> {
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    let first = Offset::UTC.to_timestamp(date(2024, 1, 1).at(0, 0, 0, 0)).ok()?;
    let next = "one of the clocks was wrong: set it, and measure again";
    if written.duration_since(now) > SLACK {
        Some(format!("it was written on {}, and this machine's clock says {}; {next}", day(written), day(now)))
    } else if written < first {
        Some(format!("it was written on {}, when there was no railgauge; {next}", day(written)))
    } else {
        None
    }
}
