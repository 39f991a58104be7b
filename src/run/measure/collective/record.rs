use std::collections::BTreeSet;

use railgauge_model::journal::event::{COLLNET, LinkRecord};
use railgauge_wire::{
    Carried, Carrier, CollectiveMeasurement, Failure, GigabitsPerSecond, GpuPath, HostFacts, Kind, LinkLayer, Stage,
    remedy,
};

use super::group::{Group, Member};

/// What carried the bytes of the group: the slowest kind any rank has evidence of.
pub(super) fn record(group: &Group, accounts: &[CollectiveMeasurement]) -> Result<LinkRecord, Failure> {
    // Of ranks over host memory those count whose bytes leave their host.
    let slowness = |carried: &&Carried| match carried.transport {
        Carrier::NcclSocket => 4,
        Carrier::NcclPlugin => 3,
        Carrier::NcclIb => 2,
        Carrier::NcclShm => 1,
        _ => u8::from(carried.link_layer != Some(LinkLayer::Loopback)),
    };
    let first = &group.members[0];
    let Some(carried) = accounts.iter().filter_map(|account| account.carried.as_ref()).max_by_key(slowness) else {
        let cause = "NCCL's log does not say what carried the bytes";
        return Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).remedy(remedy::NCCL_LOG));
    };
    let nvlink = group.members.iter().all(|member| {
        // By its address: CUDA may number GPUs differently than the driver.
        let opened = member.opened.as_ref().and_then(|opened| opened.settings.get("gpu_pci"));
        let gpu = opened.and_then(|pci| member.facts.gpus.iter().find(|gpu| gpu.pci.as_ref() == Some(pci)));
        gpu.and_then(|gpu| gpu.nvlinks).is_some_and(|links| links > 0)
    });
    let sockets = carried.transport == Carrier::NcclSocket
        && within_one_stack(group.members.iter().map(|member| &*member.facts).zip(accounts));
    let named = if sockets { Some(LinkLayer::Loopback) } else { carried.link_layer };
    // HIP reports to each rank what connects its GPUs.
    let xgmi = group.members.iter().all(|member| {
        let links = member.opened.as_ref().and_then(|opened| opened.settings.get("gpu_links"));
        links.is_some_and(|layer| layer == LinkLayer::Xgmi.word())
    });
    let link_layer = named.unwrap_or(match carried.transport {
        Carrier::NcclP2p if xgmi => LinkLayer::Xgmi,
        Carrier::NcclP2p if nvlink => LinkLayer::Nvlink,
        Carrier::NcclP2p => LinkLayer::Pcie,
        Carrier::NcclSocket => LinkLayer::Ethernet,
        _ => LinkLayer::Loopback,
    });
    // A network without GPUDirect copies through the host: nothing of it was demanded, and the record says so.
    let gpu_path =
        accounts.iter().filter_map(|a| a.carried.as_ref()).map(|c| c.gpu_path).max_by_key(|path| match path {
            GpuPath::Staged => 2,
            GpuPath::None => 0,
            _ => 1,
        });
    let mut settings = first.opened.as_ref().map(|opened| opened.settings.clone()).unwrap_or_default();
    for account in accounts {
        for (words, count) in account.carried.iter().flat_map(|carried| &carried.evidence) {
            settings.insert(format!("carried: {words}"), count.to_string());
        }
    }
    if accounts.iter().filter_map(|account| account.carried.as_ref()).any(|carried| carried.collnet) {
        settings.insert(COLLNET.to_owned(), "true".to_owned());
    }
    for (kind, count) in accounts.iter().filter_map(|account| account.carried.as_ref()).flat_map(|c| &c.channels) {
        settings.insert(format!("channels: {kind}"), count.to_string());
    }
    for (name, host) in [("nics", group.members.first()), ("nics_remote", group.members.last())] {
        let nics = host.and_then(|member| nics_of(group, accounts, &member.port.host));
        settings.extend(nics.map(|nics| (name.to_owned(), nics)));
    }
    if let Some(algorithm) = accounts.iter().find_map(|account| account.algorithm) {
        settings.insert("algorithm".into(), algorithm.to_string());
    }
    let opened = || group.members.iter().filter_map(|member| member.opened.as_ref());
    let rates: Option<Vec<GigabitsPerSecond>> = opened().map(|opened| opened.rate_gbps).collect();
    let device = |member: &Member| member.opened.as_ref().map_or_else(String::new, |opened| opened.device.clone());
    Ok(LinkRecord {
        transport: carried.transport,
        link_layer,
        gpu_path: gpu_path.unwrap_or(GpuPath::None),
        software: opened().any(|opened| opened.software),
        from_device: device(first),
        to_device: group.members.last().map(device).unwrap_or_default(),
        rate_gbps: rates.and_then(|rates| rates.into_iter().reduce(GigabitsPerSecond::min)),
        mtu: opened().map(|opened| opened.mtu).min().unwrap_or(0),
        write_order: None,
        settings,
    })
}

/// Whether sockets end where they begin: every address of the interfaces in use is one of every rank's host, as with several agents on one
/// machine. The kernel then passes the bytes on by itself, and no interface sees them, whichever one NCCL reports. `false` where a rank's
/// interfaces or their addresses are unknown.
fn within_one_stack<'a>(ranks: impl Iterator<Item = (&'a HostFacts, &'a CollectiveMeasurement)> + Clone) -> bool {
    let mut used = BTreeSet::new();
    for (facts, account) in ranks.clone() {
        let Some(carried) = &account.carried else { return false };
        if !carried.networked {
            continue;
        }
        for name in &carried.nics {
            match facts.interface(name) {
                Some(interface) if !interface.addresses.is_empty() => used.extend(&interface.addresses),
                _ => return false,
            }
        }
        if carried.nics.is_empty() {
            return false;
        }
    }
    let has = |facts: &HostFacts, address: &String| facts.interfaces.iter().any(|own| own.addresses.contains(address));
    let everywhere = ranks.map(|(facts, _)| facts).all(|facts| used.iter().all(|address| has(facts, address)));
    everywhere && !used.is_empty()
}

/// What the ranks of a host use to reach other hosts, by the library's log; `None` where it is missing for one of them.
fn nics_of(group: &Group, accounts: &[CollectiveMeasurement], host: &str) -> Option<String> {
    let mut names = BTreeSet::new();
    for (_, account) in group.members.iter().zip(accounts).filter(|(member, _)| *member.port.host == *host) {
        let carried = account.carried.as_ref()?;
        if carried.networked && carried.nics.is_empty() {
            return None;
        }
        names.extend(carried.nics.iter().map(String::as_str));
    }
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use railgauge_wire::Interface;

    use super::*;

    fn rank(address: &str, uses: &[&str]) -> (HostFacts, CollectiveMeasurement) {
        let interface = |name: &str, address: &str| Interface {
            name: name.to_owned(),
            addresses: vec![address.to_owned()],
            ..Interface::default()
        };
        let interfaces = vec![interface("eth0", address), interface("lo", "127.0.0.1")];
        let carried = Carried {
            transport: Carrier::NcclSocket,
            link_layer: Some(LinkLayer::Ethernet),
            gpu_path: GpuPath::Staged,
            evidence: BTreeMap::new(),
            networked: true,
            collnet: false,
            channels: BTreeMap::new(),
            nics: uses.iter().map(|name| (*name).to_owned()).collect(),
        };
        let account = CollectiveMeasurement { carried: Some(carried), ..CollectiveMeasurement::default() };
        (HostFacts { interfaces, ..HostFacts::default() }, account)
    }

    fn one_stack(ranks: &[(HostFacts, CollectiveMeasurement)]) -> bool {
        within_one_stack(ranks.iter().map(|(facts, account)| (facts, account)))
    }

    #[test]
    fn sockets_of_one_machine_never_leave_it() {
        assert!(one_stack(&[rank("10.0.0.1", &["eth0"]), rank("10.0.0.1", &["eth0"])]));
        assert!(one_stack(&[rank("10.0.0.1", &["eth0"]), rank("10.0.0.1", &["lo"])]));
        assert!(!one_stack(&[rank("10.0.0.1", &["eth0"]), rank("10.0.0.2", &["eth0"])]));
        assert!(!one_stack(&[rank("10.0.0.1", &["eth0"]), rank("10.0.0.1", &[])]));
        assert!(!one_stack(&[rank("10.0.0.1", &["eth0"]), rank("10.0.0.1", &["eth7"])]));
    }
}
