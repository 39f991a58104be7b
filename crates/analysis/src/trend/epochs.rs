//! Changes that may explain others. Only a declaration makes a new level good; a new driver or firmware is named with
//! what changed at the same time.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Epoch, Lines, Options, Order, calendar::date, history::Software};

/// Declared epochs without an effect, each with the reason: no night is on the other side of it. `nights` are in order.
pub(super) fn idle(declared: &[(i64, String)], nights: &[i64]) -> Vec<String> {
    let (Some(&first), Some(&last)) = (nights.first(), nights.last()) else { return Vec::new() };
    let why = |(day, what): &(i64, String)| {
        let place = match *day {
            day if day > last => format!("it is later than the last night, {}, and accepts nothing yet", date(last)),
            day if day < first => format!("it is earlier than the first night, {}, and accepts nothing", date(first)),
            _ => return None,
        };
        Some(format!("--epoch \"{} {what}\": {place}", date(*day)))
    };
    declared.iter().filter_map(why).collect()
}

/// Declarations, edits, and new software, the latest first.
pub(super) fn epochs(order: &Order<'_>, lines: &Lines, options: &Options) -> Vec<Epoch> {
    let runs = order.days.iter().enumerate().map(|(at, day)| (*day, order.at(at)));
    let mut found = changed(runs.clone().map(|(day, run)| (day, run.version.as_str(), &run.software)));
    let last = order.days.last().copied().unwrap_or(i64::MIN);
    for (day, what) in options.epochs.iter().filter(|(day, _)| *day <= last) {
        note(&mut found, *day, what.clone()).declared = true;
    }
    let mut begun: HashSet<usize> = HashSet::new();
    for (day, run) in runs {
        if let Some(what) = lines.edit(run.plan).filter(|_| begun.insert(run.plan)) {
            note(&mut found, day, what.to_owned()).edited.push(lines.of(run.plan));
        }
    }
    found.into_values().rev().collect()
}

type Found = BTreeMap<(i64, String), Epoch>;

fn note(found: &mut Found, day: i64, what: String) -> &mut Epoch {
    let new = |(day, what): &(i64, String)| {
        let (date, what) = (date(*day), what.clone());
        Epoch { date, day: *day, what, hosts: Vec::new(), declared: false, edited: Vec::new() }
    };
    found.entry((day, what)).or_insert_with_key(new)
}

/// Changes of railgauge and of the hosts' software, from the day, the version and the software of every run in order.
fn changed<'s>(runs: impl Iterator<Item = (i64, &'s str, &'s BTreeMap<String, Software>)>) -> Found {
    let (mut found, mut known) = (Found::new(), HashMap::new());
    for (day, version, hosts) in runs {
        let of_hosts =
            hosts.iter().flat_map(|(host, of)| of.iter().map(move |(fact, value)| (&**host, &**fact, &**value)));
        for (host, fact, value) in std::iter::once(("", "railgauge", version)).chain(of_hosts) {
            if let Some(old) = known.insert((host, fact), value).filter(|old| *old != value) {
                let epoch = note(&mut found, day, format!("{fact}: {old} → {value}"));
                epoch.hosts.extend((!host.is_empty()).then(|| host.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_on_no_side_of_any_night_is_told() {
        let declared = [3, 10, 15, 20, 21].map(|day| (day, "switches".to_owned()));
        let told = idle(&declared, &[10, 15, 20]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("1970-01-04 switches") && told[0].contains("earlier than the first night, 1970-01-11")
        );
        assert!(told[1].contains("1970-01-22 switches") && told[1].contains("later than the last night, 1970-01-21"));
        assert!(idle(&declared, &[]).is_empty());
    }

    #[test]
    fn new_firmware_and_versions_are_told_and_only_declarations_begin_epochs() {
        let night = |firmware: Option<&str>| {
            let list = firmware.map(|firmware| ("mlx5_0 firmware".to_owned(), firmware.to_owned()));
            BTreeMap::from([("a".to_owned(), Software::new(list.into_iter().collect()))])
        };
        let nights =
            [("0.1", Some("28.1")), ("0.1", None), ("0.1", Some("28.1")), ("0.1", Some("28.2")), ("0.2", Some("28.2"))];
        let nights = nights.map(|(version, firmware)| (version, night(firmware)));
        let found = changed((1..).zip(&nights).map(|(day, (version, hosts))| (day, *version, hosts)));
        let found: Vec<Epoch> = found.into_values().collect();
        let told: Vec<String> = found.iter().map(|epoch| format!("{} {}", epoch.day, epoch.what)).collect();
        assert_eq!(told, ["4 mlx5_0 firmware: 28.1 → 28.2", "5 railgauge: 0.1 → 0.2"]);
        assert_eq!(found.iter().map(|epoch| epoch.hosts.len()).collect::<Vec<_>>(), [1, 0]);
        assert!(found.iter().all(|epoch| !epoch.declared));
    }
}
