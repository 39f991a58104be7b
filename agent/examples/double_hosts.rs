//! The hosts around the verbs double, for programs: `double_hosts` lists its devices as JSON, `double_hosts PROFILE HOST
//! ROOT` makes the tree of the host with that number below a directory, and `double_hosts PROFILE:TREE HOST ROOT` that of
//! another text in `agent/tests/hosts/double`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what cannot be unpacked ends it, as a test"
)]

#[path = "../../tests/support/devices.rs"]
mod devices;
#[path = "../src/facts/tests/tree.rs"]
#[allow(dead_code, reason = "only unpacks here")]
mod tree;

use std::{path::Path, process::ExitCode};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            let all = devices::DEVICES.map(|device| {
                serde_json::json!({
                    "profile": device.profile, "name": device.name, "driver": device.driver,
                    "atomics": device.atomics, "collectives": device.collectives,
                })
            });
            println!("{}", serde_json::Value::from(all.to_vec()));
        }
        [profile, host, root] => {
            let (profile, tree) = profile.split_once(':').map_or((*profile, None), |(name, tree)| (name, Some(tree)));
            let mut device = devices::named(profile);
            if let Some(tree) = tree {
                device.tree = tree.to_owned().leak();
            }
            device.unpack(host, Path::new(root));
        }
        _ => {
            eprintln!("usage: double_hosts [PROFILE[:TREE] HOST ROOT]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
