//! Which NICs of its hosts carried a collective.

use std::collections::BTreeMap;

use railgauge_model::journal::event::Sample;
use railgauge_wire::Bytes;

#[derive(Debug, Clone, PartialEq)]
pub struct HostShare<'s> {
    pub host: &'s str,
    /// Those with the most bytes first.
    pub nics: Vec<(&'s str, Bytes)>,
    /// As many as the host has ranks; the others may be idle.
    pub expected: usize,
}

impl HostShare<'_> {
    pub fn sum(&self) -> Bytes {
        self.nics.iter().map(|(_, bytes)| *bytes).sum()
    }

    /// What the least used of the expected NICs carried, in percent of the most used one. `None` where nothing was counted.
    pub fn balance(&self) -> Option<f64> {
        let (_, most) = self.nics.first().filter(|(_, bytes)| !bytes.is_zero())?;
        let (_, least) = self.nics.get(self.expected.checked_sub(1)?)?;
        Some(100.0 * least.as_f64() / most.as_f64())
    }
}

/// In the order of the records. Hosts with one NIC have no share. Nothing unless the NICs of every host with a rank were counted: what
/// some hosts do would pass for all.
pub fn by_host(sample: &Sample) -> Vec<HostShare<'_>> {
    if sample.nics.is_empty() {
        return Vec::new();
    }
    let mut hosts: Vec<HostShare<'_>> = Vec::new();
    for nic in &sample.nics {
        let one = (nic.device.as_str(), nic.bytes);
        match hosts.last_mut().filter(|last| last.host == nic.host) {
            Some(last) => last.nics.push(one),
            None => hosts.push(HostShare { host: &nic.host, nics: vec![one], expected: 0 }),
        }
    }
    let mut ranks: BTreeMap<&str, usize> = BTreeMap::new();
    sample.ranks.iter().for_each(|rank| *ranks.entry(&rank.host).or_default() += 1);
    if hosts.len() < ranks.len() {
        return Vec::new();
    }
    for one in &mut hosts {
        one.nics.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        one.expected = ranks.get(one.host).copied().unwrap_or(0).min(one.nics.len());
    }
    hosts.retain(|one| one.nics.len() > 1);
    hosts
}

/// That of the host with the lowest.
pub fn worst(sample: &Sample) -> Option<(HostShare<'_>, f64)> {
    let known = by_host(sample).into_iter().filter_map(|host| host.balance().map(|balance| (host, balance)));
    known.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// `mlx5_3, which NCCL's log does not name, carried 0.0 % of the bytes of gpu02, and mlx5_0 50.1 %`.
pub fn words(sample: &Sample) -> Option<String> {
    let (host, _) = worst(sample)?;
    let share = |bytes: &Bytes| 100.0 * bytes.as_f64() / host.sum().as_f64();
    let ((most, busy), (least, idle)) = (host.nics.first()?, host.nics.get(host.expected - 1)?);
    let mut used = sample.ranks.iter().filter(|rank| rank.host == host.host).flat_map(|rank| &rank.nics).peekable();
    let unnamed = used.peek().is_some() && !used.any(|name| name == least);
    let why = if unnamed { ", which NCCL's log does not name," } else { "" };
    let (idle, busy, host) = (share(idle), share(busy), host.host);
    Some(format!("{least}{why} carried {idle:.1} % of the bytes of {host}, and {most} {busy:.1} %"))
}

#[cfg(test)]
mod tests {
    use railgauge_model::journal::event::{NicBytes, RankAccount};
    use railgauge_wire::Nanoseconds;

    use super::*;

    fn sample(ranks: usize, used: &[&str], bytes: &[u64]) -> Sample {
        let rank = |rank| RankAccount {
            rank,
            host: "a".into(),
            device: String::new(),
            gpu: None,
            p50: Nanoseconds(1),
            max: Nanoseconds(1),
            operations: 1,
            checked: railgauge_wire::step::Checked::default(),
            carried: None,
            nics: used.iter().map(|name| (*name).to_owned()).collect(),
        };
        let nic =
            |(n, bytes): (usize, &u64)| NicBytes { host: "a".into(), device: format!("n{n}"), bytes: Bytes(*bytes) };
        Sample {
            ranks: (0..ranks as u32).map(rank).collect(),
            nics: bytes.iter().enumerate().map(nic).collect(),
            ..Sample::default()
        }
    }

    #[test]
    fn the_least_used_of_the_expected_nics_is_compared_with_the_most_used() {
        for (ranks, bytes, wanted) in [
            (4, &[100, 100, 100, 100][..], Some(100.0)),
            (4, &[100, 100, 0, 200], Some(0.0)),
            (4, &[100, 80, 90, 100], Some(80.0)),
            // Two ranks need two NICs, whichever they are.
            (2, &[0, 100, 0, 90], Some(90.0)),
            (8, &[100, 50], Some(50.0)),
            // Nothing was counted, there is one NIC, or no rank.
            (4, &[0, 0, 0, 0], None),
            (4, &[100], None),
            (0, &[100, 100], None),
        ] {
            let found = worst(&sample(ranks, &[], bytes)).map(|(_, balance)| balance);
            assert_eq!(found, wanted, "{bytes:?}");
        }
    }

    #[test]
    fn hosts_whose_nics_were_not_counted_leave_it_unknown() {
        let mut partly = sample(2, &[], &[100, 100]);
        assert!(worst(&partly).is_some());
        partly.ranks[1].host = "b".into();
        assert_eq!(worst(&partly), None);
    }

    #[test]
    fn the_idle_nic_is_named_with_what_nccl_says_of_it() {
        let named = |used: &[&str]| words(&sample(2, used, &[300, 0])).unwrap();
        assert_eq!(
            named(&["n0"]),
            "n1, which NCCL's log does not name, carried 0.0 % of the bytes of a, and n0 100.0 %"
        );
        assert_eq!(named(&["n0", "n1"]), "n1 carried 0.0 % of the bytes of a, and n0 100.0 %");
    }
}
