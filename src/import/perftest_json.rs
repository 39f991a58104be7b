//! perftest's `--out_json`. Up to 6.18 it is not valid JSON: names and words without quotes, commas before braces. All versions have one
//! name and one value per line, which is how it is parsed.

use railgauge_wire::{
    terms::{Metric, TestMetric},
    unit::Bytes,
};

use super::{
    ImportError, Kind, Output, Said,
    found::SAME,
    number,
    perftest::{TESTS, bandwidth, kind_of, output, setting},
};

pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| line.trim().trim_start_matches('"').starts_with("test_info"))
}

struct Field<'t> {
    line: u64,
    name: &'t str,
    value: &'t str,
}

pub(super) fn read(file: &str, text: &str) -> Result<Vec<Output>, ImportError> {
    let (mut info, mut results): (Vec<Field<'_>>, Vec<Field<'_>>) = (Vec::new(), Vec::new());
    let (mut open, mut in_results, mut last) = (0_u8, false, 1);
    for (line, raw) in (1..).zip(text.lines()) {
        let bare = raw.trim().trim_end_matches(',').trim();
        if bare.is_empty() {
            continue;
        }
        last = line;
        let malformed = |expected: &str| ImportError::malformed(file, line, expected, raw.trim());
        match (open, bare) {
            (0, "{") => open = 1,
            (1, "}") => open = 9,
            (2, "}") => open = 1,
            (1, start) if start.ends_with('{') => {
                let name = start.trim_end_matches('{').trim().trim_end_matches(':').trim().trim_matches('"');
                in_results = match name {
                    "test_info" => false,
                    "results" => true,
                    _ => return Err(malformed("`test_info` or `results`")),
                };
                open = 2;
            }
            (2, field) => {
                let (name, value) = field.split_once(':').ok_or_else(|| malformed("a name, a colon and a value"))?;
                let [name, value] = [name, value].map(|word| word.trim().trim_matches('"'));
                let part = if in_results { &mut results } else { &mut info };
                part.push(Field { line, name, value });
            }
            _ => return Err(malformed("one test with `test_info` and `results`, one name on a line")),
        }
    }
    if open != 9 {
        return Err(ImportError::truncated(file, last, "closing braces"));
    }
    let mut output = output();
    let kind = settings(file, &info, last, &mut output)?;
    output.said = values(file, &results, last, kind)?;
    Ok(vec![output])
}

fn settings(file: &str, info: &[Field<'_>], last: u64, output: &mut Output) -> Result<Kind, ImportError> {
    let test = info.iter().find(|field| field.name == "test");
    let test = test.ok_or_else(|| ImportError::truncated(file, last, "the field `test`"))?;
    let mut kind = kind_of(test.value)
        .ok_or_else(|| ImportError::unsupported(file, test.line, format!("`{}`", test.value), TESTS))?;
    for field in info {
        setting(file, field.line, (field.name, field.value), output, &mut kind)?;
    }
    Ok(kind)
}

fn values(file: &str, results: &[Field<'_>], last: u64, kind: Kind) -> Result<Vec<Said>, ImportError> {
    let find = |name: &str| results.iter().find(|field| field.name == name);
    let need = |name: &str| {
        find(name)
            .ok_or_else(|| ImportError::truncated(file, last, format!("`{name}` in `results`, as without --output")))
    };
    let size = need("MsgSize")?;
    let bytes = number::whole(size.value)
        .ok_or_else(|| ImportError::malformed(file, size.line, "a size in bytes", size.value))?;
    let said = |field: &Field<'_>, metric: Metric, scale: (f64, f64)| {
        let written = number::real(field.value)
            .ok_or_else(|| ImportError::malformed(file, field.line, "a number", field.value))?;
        Ok(Said::new(field.line, kind, Some(Bytes(bytes)), metric, written, scale))
    };
    if kind.metric == TestMetric::Latency {
        let names = [
            ("t_min", Metric::LatencyMin),
            ("t_max", Metric::LatencyMax),
            ("t_typical", Metric::LatencyP50),
            ("t_avg", Metric::LatencyMean),
            ("percentile_99", Metric::LatencyP99),
            ("percentile_99.9", Metric::LatencyP999),
        ];
        need("t_avg")?;
        return names.iter().filter_map(|(name, metric)| Some(said(find(name)?, *metric, SAME))).collect();
    }
    let (average, rate) = (need("BW_average")?, need("MsgRate")?);
    let mut both = [said(average, Metric::Bandwidth, SAME)?, said(rate, Metric::MessageRate, SAME)?];
    both[0].scale = bandwidth(is_gigabits(&both, bytes).ok_or_else(|| {
        let expected = format!("MiB/s or Gb/s that agree with a message rate of {} Mpps", rate.value);
        ImportError::malformed(file, average.line, expected, average.value)
    })?);
    Ok(both.into())
}

/// Whether a bandwidth is in Gb/s, else in MiB/s: the file does not say it. Message rate times size is the same bandwidth, and the two
/// units differ by a factor of 119, so that only one can fit. `None` where neither does within the digits that are written.
fn is_gigabits([average, rate]: &[Said; 2], size: u64) -> Option<bool> {
    let number = |said: &Said| {
        let decimals = said.written.split_once('.').map_or(0, |(_, digits)| digits.len());
        Some((said.written.parse::<f64>().ok()?, 0.5 * 0.1_f64.powi(i32::try_from(decimals).ok()?)))
    };
    let ((average, off), (rate, rate_off)) = (number(average)?, number(rate)?);
    let fits = |(multiply, divide): (f64, f64)| {
        let of_rate = |rate: f64| rate * 1e6 * size as f64 * 8.0 / 1e9;
        let [low, high] = [average - off, average + off].map(|average| average * multiply / divide);
        // Relative tolerance of 1e-6 for the arithmetic of doubles on both sides.
        low <= of_rate(rate + rate_off) * (1.0 + 1e-6) && of_rate(rate - rate_off) * (1.0 - 1e-6) <= high
    };
    match (fits(bandwidth(true)), fits(bandwidth(false))) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}
