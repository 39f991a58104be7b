use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::{GigabitsPerSecond, Metric};

use super::{
    Section, Table, Unset, checks,
    format::keys,
    grammar::quantity,
    model::{Preflight, Wanted},
    telemetry,
};
use crate::border::text::is_printable;

pub static PREFLIGHT: Section = Section {
    header: "[preflight]",
    about: "The required configuration of the hosts, checked before anything is measured. Each value is a verdict of \
            the run, whatever transport its tests use: a failure where a host does not have it, inconclusive where that \
            cannot be read. Without a wanted value hosts are compared with each other, and what differs is a finding.",
    keys: keys! {
        "mtu": Whole(68, 65_535), OTHERS,
            "MTU in bytes of the interfaces behind RDMA ports; on a host without RDMA, of those in `tcp`, else of \
             all with an address.";
        "link_rate": Quantity, OTHERS, "Rate of every RDMA port: `\"400 Gb/s\"`.";
        "rdma_ports": Whole(1, 64), OTHERS, "Usable RDMA ports of every host.";
        "gpus": Whole(1, 64), OTHERS, "GPUs of every host.";
        "pfc_priority": Wholes(0, 7), OTHERS, "Priorities with flow control (PFC), and no others.";
        "trust": Word(|| vec!["dscp", "pcp"]), OTHERS,
            "Packet field that sets the priority, if the driver shows it.";
        "max_read_request": Whole(128, 4096), Means("4096 is advised"),
            "Largest PCIe read request of RDMA devices, in bytes; only root can read it.";
        "firmware": Versions, OTHERS,
            "Firmware versions by device, board id or driver: `{ mlx5_core = \"28.43.1014\" }`.";
        "modules": Versions, OTHERS,
            "Versions of kernel modules: `{ nvidia_peermem = \"580.95.05\" }`; `*`: any, but loaded.";
        "kernel": Text, OTHERS, "Kernel release, as `uname -r` prints it.";
        "gpu_driver": Text, OTHERS, "Version of the GPUs' driver.";
        "governor": Text, Means("`performance` is advised"), "Frequency governor of every processor.";
        "iommu": Word(|| vec!["off", "passthrough", "translated"]), Means("`off` and `passthrough` are fine"),
            "How the IOMMU treats RDMA devices.";
        "ufm_telemetry": Path, Means("none"),
            "CSV file of UFM telemetry (`curl http://UFM:9002/csv/xcset/low_freq_debug`) with error rates of the \
             ports ([levels](tests.md#levels-of-links)).";
        "waive": Words(|| checks::NAMES.to_vec()), Means("none"),
            "Checks whose findings and requirements do not count; `railgauge preflight` still prints them.";
        "escalate": Words(|| checks::NAMES.to_vec()), Means("none"), "Checks whose findings fail the run.";
    },
};

const OTHERS: Unset = Unset::Means("what most hosts have");

pub fn read(top: &Table<'_>) -> Preflight {
    let table = top.table("preflight");
    let names = |name: &str| table.words(name).into_iter().map(|word| word.value.to_owned()).collect::<Vec<_>>();
    let escalate = names("escalate");
    for word in table.words("waive").iter().filter(|word| escalate.iter().any(|name| name == word.value)) {
        let message = format!("`{}` is both waived and escalated", word.value);
        table.wrong(word.span.clone(), message, "list a check in only one of them");
    }
    let priorities = table.wholes("pfc_priority").map(|list| list.value.into_iter().map(|number| number.value));
    let rate = table.parsed("link_rate", |text| quantity::limit(text, Metric::Bandwidth));
    let wanted = Wanted {
        link_rate_gbps: rate.map(|rate| GigabitsPerSecond(rate.value.0)),
        pfc_priority: priorities.map(|list| list.collect::<BTreeSet<u8>>().into_iter().collect()),
        firmware: versions(&table, "firmware"),
        modules: versions(&table, "modules"),
        ..table.settings(|_| true)
    };
    Preflight { wanted, waive: names("waive"), escalate, ufm_telemetry: telemetry::read(&table) }
}

fn versions(table: &Table<'_>, name: &str) -> BTreeMap<String, String> {
    let raw = table.raw(name);
    let entries = raw.iter().filter_map(|raw| raw.value.as_table()).flatten();
    let mut found = BTreeMap::new();
    for (name, value) in entries {
        let Some(text) = value.get_ref().as_str() else { continue };
        if is_printable(name.get_ref()) && is_printable(text) {
            found.insert(name.get_ref().to_string(), text.to_owned());
            continue;
        }
        let message = "a name or version with an unprintable character";
        table.wrong(value.span(), message, "write it as `ethtool -i` or `modinfo` prints it");
    }
    found
}
