//! Maps runs to nights, and days to dates.

use jiff::{Timestamp, civil::Date};

/// Runs that start within these seconds of a night's first run are repeats of that night, in any time zone.
const NIGHT: i64 = 12 * 3600;
/// Share of the pauses between nights that count as usual.
const USUAL: f64 = 0.9;

/// By run: the day of its night's first run (UTC, counted from 1970); `starts` are in rising order.
pub fn nights(starts: &[Timestamp]) -> Vec<i64> {
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

/// UTC, from 1970.
pub(super) fn day_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(86_400)
}

/// Days without a run between these nights (in order), if a pause is longer than nine of ten others: every day if runs
/// are nightly, one a week if they are weekly. Runs on working days pause for three days every week.
pub(super) fn gaps(nights: &[i64]) -> Vec<i64> {
    let mut pauses: Vec<i64> = nights.windows(2).map(|pair| pair[1] - pair[0]).collect();
    pauses.sort_unstable();
    let rank = (pauses.len() as f64 * USUAL).ceil() as usize;
    let Some(usual) = rank.checked_sub(1).and_then(|at| pauses.get(at)).and_then(|days| usize::try_from(*days).ok())
    else {
        return Vec::new();
    };
    nights.windows(2).flat_map(|pair| (pair[0]..pair[1]).step_by(usual.max(1)).skip(1)).collect()
}

pub fn date(day: i64) -> String {
    let start = Date::constant(1970, 1, 1);
    let date = jiff::Span::new().try_days(day).ok().and_then(|days| start.checked_add(days).ok());
    date.map_or_else(|| format!("day {day}"), |date| date.to_string())
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("`{text}` is not a date such as 2026-11-21")]
pub struct NotADate {
    pub text: String,
    pub cause: jiff::Error,
}

/// From a date such as `2026-11-21`; counted from 1970.
///
/// # Errors
/// It is not a date.
pub fn day(date: &str) -> Result<i64, NotADate> {
    let wrong = |cause| NotADate { text: date.to_owned(), cause };
    let parsed: Date = date.parse().map_err(wrong)?;
    let start = Date::constant(1970, 1, 1);
    let days = start.until(parsed).map_err(wrong)?;
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
    fn days_without_a_run_are_told_where_a_pause_is_unusual() {
        let nights: Vec<i64> = (0..40).filter(|day| ![7, 8, 30].contains(day)).collect();
        assert_eq!(gaps(&nights), [7, 8, 30]);
        assert!(gaps(&[0, 7, 14, 21]).is_empty() && gaps(&[3]).is_empty() && gaps(&[]).is_empty());
        let working: Vec<i64> = (0..60).filter(|day| day % 7 < 5).collect();
        assert!(gaps(&working).is_empty());
        // A week is lost, or a quarter of all nights; one of weekly runs.
        let lost: Vec<i64> = (0..40).filter(|day| !(20..29).contains(day)).collect();
        assert_eq!(gaps(&lost), (20..29).collect::<Vec<_>>());
        assert_eq!(gaps(&[0, 7, 14, 21, 28, 35, 42, 49, 63, 70, 77]), [56]);
        let holidays: Vec<i64> = working.into_iter().filter(|day| !(21..28).contains(day)).collect();
        assert_eq!(gaps(&holidays), [21, 24, 27]);
    }

    #[test]
    fn dates_and_days_are_one() {
        for text in ["1970-01-01", "2024-02-29", "2026-11-21"] {
            assert_eq!(date(day(text).unwrap()), text);
        }
        assert!(day("yesterday").is_err());
    }
}
