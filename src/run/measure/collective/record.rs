//! What a group turned out to be.

use std::collections::BTreeSet;

use railgauge_model::journal::event::{COLLNET, LinkRecord};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    group::{Carried, CollectiveMeasurement},
    remedy,
    terms::{Carrier, GpuPath, LinkLayer},
};

use super::{Group, Member};

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
        // By its address: CUDA may count other GPUs than the driver does.
        let opened = member.opened.as_ref().and_then(|opened| opened.settings.get("gpu_pci"));
        let gpu = opened.and_then(|pci| member.facts.gpus.iter().find(|gpu| gpu.pci.as_ref() == Some(pci)));
        gpu.and_then(|gpu| gpu.nvlinks).is_some_and(|links| links > 0)
    });
    let link_layer = carried.link_layer.unwrap_or(match carried.transport {
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
    let rates: Option<Vec<f64>> = opened().map(|opened| opened.rate_gbps).collect();
    let device = |member: &Member| member.opened.as_ref().map_or_else(String::new, |opened| opened.device.clone());
    Ok(LinkRecord {
        transport: carried.transport,
        link_layer,
        gpu_path: gpu_path.unwrap_or(GpuPath::None),
        software: opened().any(|opened| opened.software),
        from_device: device(first),
        to_device: group.members.last().map(device).unwrap_or_default(),
        rate_gbps: rates.and_then(|rates| rates.into_iter().reduce(f64::min)),
        mtu: opened().map(|opened| opened.mtu).min().unwrap_or(0),
        write_order: None,
        settings,
    })
}

/// What the ranks of a host use to reach other hosts, by the library's log; `None` where it does not say for one of them.
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
