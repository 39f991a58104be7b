//! `[soak]`: traffic for hours after the tests, while ports are watched.

use std::{collections::BTreeMap, time::Duration};

use railgauge_wire::{Bytes, GigabitsPerSecond, Metric, TestMetric, Window};
use serde::{Deserialize, Serialize};

use super::{
    At, Mistake, Section, Table, Test, format::keys, grammar::quantity, levels::Levels, test_model::RateLimit,
};

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Soak {
    pub lasts: Duration,
    /// The test whose flows carry the traffic, in its rounds, at its largest size and most queue pairs.
    pub test: String,
    /// Rate of each flow; unlimited if `None`.
    pub rate_limit: Option<RateLimit>,
    pub window: Duration,
    /// Longer outages of a port or stalls of a flow fail the run.
    pub longest_outage: Duration,
    /// Longer times at less than a port's best rate or with fewer lanes fail the run. `None` in older journals.
    pub longest_degraded: Option<Degraded>,
    /// Most rises per second, by the counter's name or the last part of it: `symbol_error`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, f64>,
    /// Whose levels of links ports are judged by.
    pub levels: Option<Levels>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Degraded {
    pub longest: Duration,
    /// Whether the plan says so itself: then a port of unknown rate does not pass.
    pub written: bool,
}

pub static SOAK: Section = Section {
    header: "[soak]",
    about: "Traffic for hours after the tests, while the ports it passes are watched: links that come and go, errors that rise, flows \
            that stall.",
    keys: keys! {
        "for": Time("1s", "2000h"), Required, "How long, interruptions not counted.";
        "test": Text, Means("the first bandwidth test of pairs"),
            "Test whose flows carry the traffic: all its rounds in turn, at its largest size and most `qps`.";
        "share": Percent(0.1, 100.0), Means("as fast as it goes"),
            "Rate of each flow, in percent of the smaller rate of both ports.";
        "rate": Quantity, Means("as fast as it goes"), "The same as a rate: `\"10 Gb/s\"`.";
        "window": Time("1s", "10min"), Is("\"10s\""),
            "Length of one window; between windows, bytes are verified and the next round starts.";
        "longest_outage": Time("0s", "1h"), Is("\"0s\""),
            "Longest time that a port may be down or a flow stall. Longer ones fail the run, shorter ones are \
             reported. NCCL jobs survive stalls shorter than their retry limit (`NCCL_IB_TIMEOUT`).";
        "longest_degraded": Time("0s", "1h"), Is("\"0s\""),
            "The same for a rate or lane count below the port's best in this soak. If written, ports that report \
             neither make the run inconclusive.";
        "limits": Frequencies, Means("none: rises are reported"),
            "Highest rates of error counters in any one reading: `{ symbol_error = \"10/s\" }`. The name is the \
             counter's, or its part after the last `/`.";
        "levels": Word(Levels::all_words), Means("none"),
            "Judges ports by NVIDIA's [levels](tests.md#levels-of-links): errors after FEC and symbol errors per \
             bit, link-downs in 24 hours, longest outage.";
    },
};

pub fn read(top: &Table<'_>, tests: &[Test]) -> Option<Soak> {
    top.written("soak")?;
    let table = top.table("soak");
    let lasts = table.time("for");
    let test = traffic(&table, tests);
    let window = table.time("window").map_or(Duration::from_secs(10), |at| at.value.into());
    let rate_limit = {
        let test = test.as_ref().and_then(|name| tests.iter().find(|test| test.name == *name));
        let (sizes, qps) = test.map(|test| (&*test.sizes, &*test.qps)).unwrap_or_default();
        rate_limit(
            &table,
            test.is_some_and(|test| test.bidirectional),
            Some(Window::Duration(window.into())),
            sizes,
            qps,
        )
    };
    let longest_outage = table.time("longest_outage").map_or(Duration::ZERO, |at| at.value.into());
    let longest = table.time("longest_degraded").map(|at| at.value.into()).unwrap_or_default();
    // The default is a value, too: only the plan's own limit applies to ports of unknown rate.
    let longest_degraded = Some(Degraded { longest, written: table.written("longest_degraded").is_some() });
    let limits = limits(&table);
    let levels = table.term("levels", Levels::from_word).map(|at| at.value);
    let lasts = lasts?.value.into();
    Some(Soak { lasts, test: test?, rate_limit, window, longest_outage, longest_degraded, limits, levels })
}

fn unfit(test: &Test) -> Option<&'static str> {
    [
        (test.collective.is_some(), "is a collective"),
        (test.transport.is_within_host(), "stays within hosts"),
        (test.metric != TestMetric::Bandwidth, "measures no bandwidth"),
        (test.beside.is_some(), "has background traffic"),
        (test.configure.is_some(), "changes the cluster with `configure`"),
    ]
    .into_iter()
    .find_map(|(is, why)| is.then_some(why))
}

fn traffic(table: &Table<'_>, tests: &[Test]) -> Option<String> {
    let Some(name) = table.text("test") else {
        let first = tests.iter().find(|test| unfit(test).is_none());
        if first.is_none() {
            let span = table.name_span("for").unwrap_or(table.span.clone());
            let help = "a test with metric = \"bandwidth\" and a pattern of pairs carries it";
            table.wrong(span, "no test of the plan can carry the traffic of the soak", help);
        }
        return first.map(|test| test.name.clone());
    };
    let Some(test) = tests.iter().find(|test| test.name == name.value) else {
        let known = table.book.nearest(&name.value, tests.iter().map(|test| test.name.as_str()));
        let help = known.map_or("name a test of the plan".to_owned(), |known| format!("did you mean `{known}`?"));
        return table.reject(name.span, format!("the plan has no test `{}`", name.value), help);
    };
    if let Some(why) = unfit(test) {
        let help = "name a bandwidth test of pairs that leaves the cluster as it is";
        return table.reject(name.span, format!("`{}` {why}", name.value), help);
    }
    Some(name.value)
}

/// Fewest messages of a queue pair in a window: the first is sent at once, so that a flow may exceed its rate by one in so many.
const MESSAGES: f64 = 10.0;

/// How fast flows with these windows, sizes and numbers of queue pairs send. The initiator's limit does not limit a responder that also
/// sends.
pub(super) fn rate_limit(
    table: &Table<'_>,
    bidirectional: bool,
    window: Option<Window>,
    sizes: &[Bytes],
    qps: &[u32],
) -> Option<RateLimit> {
    let share = table.percent("share");
    let rate = table.parsed("rate", |text| quantity::limit(text, Metric::Bandwidth).map(|(rate, _)| rate));
    if let (Some(share), Some(rate)) = (&share, &rate) {
        let mistake = Mistake::at(rate.span.clone(), "`share` and `rate` are two ways to say the same");
        table.book.add(mistake.also(share.span.clone(), "the other").help("leave one of them out"));
    }
    if let Some(rate) = &rate
        && rate.value <= 0.0
    {
        table.wrong(rate.span.clone(), "nothing is sent at this rate", "for example rate = \"10 Gb/s\"");
    } else if let (Some(rate), Some(window), Some(size), Some(qps)) =
        (&rate, window, sizes.iter().max(), qps.iter().max())
    {
        let per_second = rate.value * 1e9 / 8.0 / size.0 as f64 / f64::from(*qps);
        let messages = match window {
            Window::Iterations(count) => count as f64,
            Window::Duration(time) | Window::Adaptive { at_least: time, .. } => time.0 as f64 / 1e9 * per_second,
        };
        if messages < MESSAGES {
            let message =
                format!("a queue pair or stream sends {messages:.1} messages of {size} bytes at this rate in a window");
            let help =
                "the first is sent at once, so 10 must fit: measure longer, or use smaller `sizes` or fewer `qps`";
            table.wrong(rate.span.clone(), message, help);
        }
    }
    let span = share.as_ref().map(|at| at.span.clone()).or(rate.as_ref().map(|at| at.span.clone()));
    if let Some(span) = span.filter(|_| bidirectional) {
        let message = "the test sends in both directions, and only one of them can be held back";
        table.wrong(span, message, "leave this key out, or measure one direction");
    }
    let rate = rate.map(|At { value, .. }| RateLimit::Rate(GigabitsPerSecond(value)));
    rate.or(share.map(|share| RateLimit::Percent(share.value)))
}

fn limits(table: &Table<'_>) -> BTreeMap<String, f64> {
    let raw = table.raw("limits");
    let entries = raw.iter().filter_map(|raw| raw.value.as_table()).flatten();
    let mut found = BTreeMap::new();
    for (name, value) in entries {
        let Some(text) = value.get_ref().as_str() else { continue };
        match quantity::frequency(text) {
            Ok(limit) => drop(found.insert(name.get_ref().to_string(), limit)),
            Err(wrong) => table.wrong(value.span(), wrong.message, wrong.help),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::plan::parse;

    /// The number of errors, all about the rate.
    fn mistakes(test: &str, more: &str) -> usize {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = \"a[1-2]\" }\n[[test]]\nmetric = \"bandwidth\"\n";
        let text = format!("{head}op = \"write\"\nsizes = [\"64KiB\", \"1MiB\"]\n{test}\n{more}\n");
        let refused = parse("p.toml", &text, Path::new("")).err().map(|mistakes| mistakes.list).unwrap_or_default();
        assert!(refused.iter().all(|one| one.message.contains("messages of 1048576 bytes")), "{refused:?}");
        refused.len()
    }

    /// 10 MiB in 2 s are 41.94 Mb/s, which the first message would exceed by a tenth.
    #[test]
    fn ten_messages_of_a_limited_rate_fit_a_window() {
        for (rate, expected) in [("0.0001", 1), ("0.0419", 1), ("0.042", 0)] {
            let test = format!("rate = \"{rate} Gb/s\"\nmeasure = ");
            assert_eq!(mistakes(&format!("{test}\"2s\""), ""), expected, "{rate}");
            assert_eq!(
                mistakes(&format!("{test}{{ confidence = \"1%\", at_least = \"2s\" }}"), ""),
                expected,
                "{rate}"
            );
            assert_eq!(mistakes(&format!("{test}\"4s\"\nqps = [1, 2]"), ""), expected, "{rate}");
            assert_eq!(
                mistakes("", &format!("[soak]\nfor = \"1h\"\nwindow = \"2s\"\nrate = \"{rate} Gb/s\"")),
                expected,
                "{rate}"
            );
        }
        assert_eq!(mistakes("rate = \"1 Gb/s\"\nmeasure = \"9 iterations\"", ""), 1);
        assert_eq!(mistakes("rate = \"1 Gb/s\"\nmeasure = \"10 iterations\"", ""), 0);
    }
}
