//! The devices on each link's path, run by run: names of devices may change while the series of a link continues.

use std::collections::HashMap;

use super::history::Devices;

/// By subject: devices at both ends, by the position of the first run with them, in order.
#[derive(Debug, Default)]
pub(crate) struct Through(HashMap<usize, Vec<(usize, Devices)>>);

impl Through {
    /// From run numbers; `place` gives the position of each in time.
    pub(super) fn new(noted: HashMap<usize, Vec<(u32, Devices)>>, place: impl Fn(u32) -> usize) -> Self {
        let ordered = |(subject, all): (usize, Vec<(u32, Devices)>)| {
            let mut all: Vec<(usize, Devices)> = all.into_iter().map(|(run, devices)| (place(run), devices)).collect();
            all.sort_by_key(|(place, _)| *place);
            (subject, all)
        };
        Self(noted.into_iter().map(ordered).collect())
    }

    /// The first known ones if none is known yet.
    pub(super) fn at(&self, subject: usize, run: usize) -> Option<&Devices> {
        let all = self.0.get(&subject)?;
        let until = all.partition_point(|(place, _)| *place <= run);
        all.get(until.saturating_sub(1)).map(|(_, devices)| devices)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &Devices)> {
        self.0.iter().flat_map(|(subject, all)| all.iter().map(|(_, devices)| (*subject, devices)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_those_of_the_time() {
        let pair = |name: &str| -> Devices { [name.into(), "eth9".into()] };
        let through = Through::new([(7, vec![(1, pair("eth1")), (0, pair("eth0"))])].into(), |run| run as usize * 10);
        let first = |run: usize| through.at(7, run).map(|devices| devices[0].to_string());
        assert_eq!((first(0), first(9), first(10)), (Some("eth0".into()), Some("eth0".into()), Some("eth1".into())));
        assert_eq!(through.at(8, 0), None);
    }
}
