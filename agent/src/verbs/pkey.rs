//! Partition keys, and which one a queue pair uses: by value, since indexes differ from host to host.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

/// The highest bit: a full member of the partition. Limited members talk to full members only (InfiniBand Architecture
/// Specification 1.4, 10.9.2).
const FULL: u16 = 0x8000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pkey {
    pub index: u16,
    /// The key with its membership bit.
    pub value: u16,
}

impl Pkey {
    pub(crate) const fn full(self) -> bool {
        self.value & FULL != 0
    }

    /// The partition, whatever the membership; 0 is none.
    pub(crate) const fn partition(self) -> u16 {
        partition(self.value)
    }

    /// As tools write it: `0x8001`.
    pub(crate) fn hex(self) -> String {
        format!("{:#06x}", self.value)
    }
}

const fn partition(value: u16) -> u16 {
    value & !FULL
}

/// The entry to use: of the partition `wanted` if it is given, else the first of which the port is a full member (UCX
/// `uct_ib_iface_init_pkey`; where that is index 0, perftest's and NCCL's default too), else the first that is set.
pub(crate) fn choose(table: &[Pkey], wanted: Option<u16>, port: &str) -> Result<Pkey, Failure> {
    let fits = |key: &&Pkey| match wanted {
        Some(value) => key.partition() == partition(value),
        None => true,
    };
    let set = table.iter().filter(|key| key.partition() != 0);
    let chosen = set.clone().filter(fits).min_by_key(|key| (!key.full(), key.index));
    chosen.copied().ok_or_else(|| {
        let all: Vec<_> = set.map(|key| format!("{} (index {})", key.hex(), key.index)).collect();
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let cause = match wanted {
            Some(value) => format!("{port} is no member of partition {value:#06x}; it is one of: {all}"),
            None => format!("{port} is no member of any partition"),
        };
        Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::USE_SET_PKEY)
    })
}

/// `Err` unless ports with these keys may talk to each other. What has no partitions has no say.
pub(crate) fn must_talk(own: Option<u16>, theirs: Option<u16>) -> Result<(), Failure> {
    let (Some(own), Some(theirs)) = (own, theirs) else { return Ok(()) };
    let cause = if partition(own) != partition(theirs) {
        format!("partitions differ: {own:#06x} here, {theirs:#06x} at the peer")
    } else if (own | theirs) & FULL == 0 {
        format!("both ends are limited members of partition {own:#06x}, which do not reach each other")
    } else {
        return Ok(());
    };
    Err(Failure::new(Stage::Join, Kind::Configuration, cause).remedy(remedy::SAME_PARTITION))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(values: &[u16]) -> Vec<Pkey> {
        (0..).zip(values).map(|(index, value)| Pkey { index, value: *value }).collect()
    }

    #[test]
    fn the_first_full_membership_is_taken_wherever_it_stands() {
        let index = |values: &[u16]| choose(&table(values), None, "mlx5_0:1").unwrap().index;
        assert_eq!(index(&[0xffff]), 0);
        assert_eq!(
            index(&[0x7fff, 0x8001]),
            1,
            "a limited member of the default partition, as subnet managers set it up"
        );
        assert_eq!(index(&[0, 0, 0x8002, 0x8001]), 2);
        assert_eq!(index(&[0x0001, 0]), 0, "limited where there is nothing else");
        assert!(choose(&table(&[0, 0x8000]), None, "mlx5_0:1").unwrap_err().cause.contains("no member of any"));
    }

    #[test]
    fn a_partition_is_found_by_its_value_whatever_the_membership_bit() {
        let table = table(&[0xffff, 0x0001, 0x8001, 0x0002]);
        let index = |wanted| choose(&table, Some(wanted), "mlx5_0:1").map(|key| key.index);
        assert_eq!(index(0x8001).unwrap(), 2);
        assert_eq!(index(0x0001).unwrap(), 2, "full membership before limited");
        assert_eq!(index(0x8002).unwrap(), 3);
        let failure = index(0x8003).unwrap_err();
        assert!(failure.cause.contains("0x8003") && failure.cause.contains("0x8001 (index 2)"), "{failure}");
        assert_eq!(failure.kind, Kind::Configuration);
    }

    #[test]
    fn members_of_other_partitions_and_two_limited_ones_are_refused_before_they_wait() {
        assert!(must_talk(Some(0x8001), Some(0x8001)).is_ok());
        assert!(must_talk(Some(0x8001), Some(0x0001)).is_ok());
        assert!(must_talk(None, Some(0x8001)).is_ok());
        let failure = must_talk(Some(0xffff), Some(0x8001)).unwrap_err();
        assert!(failure.cause.contains("0xffff") && failure.cause.contains("0x8001"), "{failure}");
        assert!(must_talk(Some(1), Some(1)).unwrap_err().cause.contains("limited"));
    }
}
