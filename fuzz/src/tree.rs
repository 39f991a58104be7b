//! Files of sysfs and procfs: a host of which one file holds something else.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::LazyLock};

use railgauge_agent::parts::{Address, Live, PortAnswer, Tree, collect, interfaces};
use railgauge_wire::facts::HostFacts;

// The hosts of the agent's own tests.
#[path = "../../agent/src/facts/tests/fixture.rs"]
#[allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "the agent's tests use it too")]
mod fixture;

/// A host, unpacked, and what its files hold.
struct Unpacked {
    host: fixture::Host,
    files: Vec<(PathBuf, Vec<u8>)>,
}

static HOSTS: LazyLock<Vec<Unpacked>> = LazyLock::new(|| {
    let unpacked = |name: &str| {
        let host = fixture::unpack(name);
        let content = |file: &String| {
            let path = host.root.path().join(file);
            let bytes = fs::read(&path).unwrap_or_default();
            (path, bytes)
        };
        let mut files: Vec<(PathBuf, Vec<u8>)> = host.unpacked.files.iter().map(content).collect();
        files.sort();
        files.dedup();
        Unpacked { host, files }
    };
    ["softroce.host", "infiniband.host", "machine.host"].map(unpacked).into()
});

/// The first three bytes say which host and file it is, the others are what it holds.
pub(crate) fn run(data: &[u8]) {
    let Some(([host, high, low], content)) = data.split_first_chunk() else { return };
    let hosts = &*HOSTS;
    let Unpacked { host, files } = &hosts[usize::from(*host) % hosts.len()];
    let which = usize::from(u16::from_be_bytes([*high, *low]));
    let Some((path, honest)) = files.get(which % files.len().max(1)) else { return };
    if fs::write(path, content).is_ok() {
        let reply = serde_json::to_vec(&host.facts());
        assert!(reply.is_ok_and(|reply| reply.len() < 4 << 20), "facts fit into a reply");
    }
    let _ = fs::write(path, honest);
}
