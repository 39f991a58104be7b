//! Runs become nights, and days become dates.

use jiff::{Timestamp, civil::Date};

/// Runs that start within these seconds of a night's first run are repeats of that night, whatever the time zone.
const NIGHT: i64 = 12 * 3600;
/// Days without a run are told where there is not more than one for so many nights.
const FEW_GAPS: usize = 5;

/// The night of each run, as the day of its first run (UTC, counted from 1970); `starts` are in rising order.
pub(super) fn nights(starts: &[Timestamp]) -> Vec<i64> {
    let mut night: Option<(i64, i64)> = None;
    let day = |start: &Timestamp| {
        let (second, date) = (start.as_second(), day_of(*start));
        let (_, day) = match night {
            Some((first, day)) if second - first < NIGHT || date <= day => (first, day),
            _ => *night.insert((second, date)),
        };
        day
    };
    starts.iter().map(day).collect()
}

/// The day of a moment, UTC, counted from 1970.
pub(super) fn day_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(86_400)
}

/// Days without a run between the first and the last of these nights, which are in order, where most of them follow each
/// other. Runs that are weekly, or on working days, leave more days out.
pub(super) fn gaps(nights: &[i64]) -> Vec<i64> {
    let gaps: Vec<i64> = nights.windows(2).flat_map(|pair| pair[0] + 1..pair[1]).collect();
    if gaps.len() * FEW_GAPS > nights.len() { Vec::new() } else { gaps }
}

/// `2026-11-21` of a day counted from 1970.
pub fn date(day: i64) -> String {
    let start = Date::constant(1970, 1, 1);
    let date = jiff::Span::new().try_days(day).ok().and_then(|days| start.checked_add(days).ok());
    date.map_or_else(|| format!("day {day}"), |date| date.to_string())
}

/// The day of a date such as `2026-11-21`, counted from 1970.
///
/// # Errors
/// It is no date, in words.
pub fn day(date: &str) -> Result<i64, String> {
    let parsed: Date = date.parse().map_err(|_| format!("`{date}` is not a date such as 2026-11-21"))?;
    let start = Date::constant(1970, 1, 1);
    let days = start.until(parsed).map_err(|error| error.to_string())?;
    Ok(i64::from(days.get_days()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_belong_to_the_night_of_the_first_run() {
        let times = [
            "2026-11-20T23:30:00Z",
            "2026-11-21T00:10:00Z",
            "2026-11-21T23:30:00Z",
            "2026-11-24T02:00:00Z",
            "2026-11-24T23:00:00Z",
        ];
        let starts: Vec<Timestamp> = times.iter().map(|time| time.parse().unwrap()).collect();
        let dates: Vec<String> = nights(&starts).into_iter().map(date).collect();
        assert_eq!(dates, ["2026-11-20", "2026-11-20", "2026-11-21", "2026-11-24", "2026-11-24"]);
    }

    #[test]
    fn days_without_a_run_are_told_where_they_are_few() {
        let nights: Vec<i64> = (0..40).filter(|day| ![7, 8, 30].contains(day)).collect();
        assert_eq!(gaps(&nights), [7, 8, 30]);
        assert!(gaps(&[0, 7, 14, 21]).is_empty() && gaps(&[3]).is_empty() && gaps(&[]).is_empty());
        let working: Vec<i64> = (0..60).filter(|day| day % 7 < 5).collect();
        assert!(gaps(&working).is_empty());
    }

    #[test]
    fn dates_and_days_are_one() {
        for text in ["1970-01-01", "2024-02-29", "2026-11-21"] {
            assert_eq!(date(day(text).unwrap()), text);
        }
        assert!(day("yesterday").is_err());
    }
}
