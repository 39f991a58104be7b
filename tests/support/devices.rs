//! The devices of the verbs double (`agent/examples/verbs_double`) and the texts of hosts that have them.
#![allow(dead_code, unreachable_pub, reason = "tests and an example include this file and use parts of it")]

use std::path::Path;

use super::tree;

/// A device: its profile, the tree of a host that has it, and the words in the tree with what takes their place.
#[derive(Clone, Copy)]
pub struct Device {
    /// What `VERBS_DOUBLE_PROFILE` calls it.
    pub profile: &'static str,
    /// Text of the host, in `agent/tests/hosts/double`.
    pub tree: &'static str,
    pub values: &'static [(&'static str, &'static str)],
    /// Its name.
    pub name: &'static str,
    /// Driver of its PCI function.
    pub driver: &'static str,
    /// Whether it has atomics.
    pub atomics: bool,
    /// Whether it has sends with immediate data, which collectives take.
    pub collectives: bool,
}

const MLX5: Device = Device {
    profile: "mlx5-roce",
    tree: "mlx5",
    values: &[("%device", "mlx5_0"), ("%driver", "mlx5_core"), ("%rate", "400 Gb/sec (4X NDR)"), ("%speed", "400000")],
    name: "mlx5_0",
    driver: "mlx5_core",
    atomics: true,
    collectives: true,
};

/// All of them.
pub const DEVICES: [Device; 13] = [
    MLX5,
    Device { profile: "mlx5-bond", tree: "bond", values: &[], name: "mlx5_bond_0", ..MLX5 },
    Device {
        profile: "cx8",
        values: &[
            ("%device", "mlx5_0"),
            ("%driver", "mlx5_core"),
            ("%rate", "40 Gb/sec (4X QDR)"),
            ("%speed", "800000"),
        ],
        ..MLX5
    },
    Device { profile: "spectrum-x", ..MLX5 },
    Device {
        profile: "vf-lag",
        tree: "vf",
        values: &[
            ("%device", "mlx5_0"),
            ("%driver", "mlx5_core"),
            ("%rate", "200 Gb/sec (4X HDR)"),
            ("%speed", "200000"),
        ],
        ..MLX5
    },
    Device { profile: "mlx5-ib", tree: "infiniband", values: &[("%pkey0", "0xffff"), ("%pkey1", "0x0000")], ..MLX5 },
    Device { profile: "vf-grh", tree: "infiniband", values: &[("%pkey0", "0xffff"), ("%pkey1", "0x0000")], ..MLX5 },
    Device { profile: "ib-pkey", tree: "infiniband", values: &[("%pkey0", "0x7fff"), ("%pkey1", "0x8123")], ..MLX5 },
    Device {
        profile: "bnxt",
        tree: "bnxt",
        values: &[
            ("%device", "bnxt_re0"),
            ("%driver", "bnxt_en"),
            ("%rate", "100 Gb/sec (4X EDR)"),
            ("%speed", "200000"),
        ],
        name: "bnxt_re0",
        driver: "bnxt_en",
        atomics: false,
        ..MLX5
    },
    Device {
        profile: "ionic",
        tree: "ionic",
        values: &[("%device", "ionic_0"), ("%driver", "ionic"), ("%rate", "100 Gb/sec (4X EDR)"), ("%speed", "200000")],
        name: "ionic_0",
        driver: "ionic",
        ..MLX5
    },
    Device {
        profile: "irdma-roce",
        tree: "irdma",
        values: &[("%device", "irdma0"), ("%driver", "ice"), ("%rate", "100 Gb/sec (4X EDR)"), ("%speed", "100000")],
        name: "irdma0",
        driver: "ice",
        atomics: false,
        ..MLX5
    },
    Device {
        profile: "irdma-iwarp",
        tree: "iwarp",
        values: &[],
        name: "irdma0",
        driver: "ice",
        atomics: false,
        collectives: false,
    },
    Device {
        profile: "efa",
        tree: "efa",
        values: &[],
        name: "efa_0",
        driver: "efa",
        atomics: false,
        collectives: false,
    },
];

/// The device of a profile.
pub fn named(profile: &str) -> Device {
    *DEVICES.iter().find(|device| device.profile == profile).unwrap_or_else(|| panic!("no profile {profile}"))
}

impl Device {
    /// Makes the tree of a host with this number (from 1) below `root`.
    pub fn unpack(&self, host: &str, root: &Path) {
        let values: Vec<_> = self.values.iter().copied().chain([("%host", host)]).collect();
        tree::unpack(&format!("double/{}.host", self.tree), root, &values);
    }

    /// What `what` says of it, in the text of its host.
    pub fn value(&self, what: &str) -> Option<&'static str> {
        self.values.iter().find(|(word, _)| *word == what).map(|(_, value)| *value)
    }
}
