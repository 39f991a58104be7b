use jiff::{SignedDuration, Timestamp, civil::date, tz::Offset};
use railgauge_wire::Nanoseconds;

/// How far a report's clock may be behind that of the controller: another machine's, in any state.
const SLACK: SignedDuration = SignedDuration::from_hours(24);
/// How far a controller's clock may be set back during a run. A line of the night before is further away.
const SET: SignedDuration = SignedDuration::from_hours(1);

/// `None` if it is not a time.
pub(super) fn since_1970(written: &str) -> Option<Nanoseconds> {
    let time: Timestamp = written.parse().ok()?;
    u64::try_from(time.as_nanosecond()).ok().map(Nanoseconds)
}

/// Whether a case began between the start of its run and the line that reports it.
pub(super) fn within(began: Timestamp, started: Timestamp, told: Timestamp) -> bool {
    began.duration_since(started) <= SET && started.duration_since(told) <= SET
}

/// Why nothing can have been written at this time, by a clock that says `now`.
pub(super) fn wrong(written: Timestamp, now: Timestamp) -> Option<String> {
    impossible(written, now)
        .map(|when| format!("it was written {when}; one of the clocks was wrong: set it, and measure again"))
}

/// Why a time cannot be one of railgauge's, by a clock that says `now`: `on 2099-01-01, and this machine's clock says …`.
pub(crate) fn impossible(time: Timestamp, now: Timestamp) -> Option<String> {
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    let first = Offset::UTC.to_timestamp(date(2024, 1, 1).at(0, 0, 0, 0)).ok()?;
    if time.duration_since(now) > SLACK {
        Some(format!("on {}, and this machine's clock says {}", day(time), day(now)))
    } else if time < first {
        Some(format!("on {}, before the first railgauge", day(time)))
    } else {
        None
    }
}
