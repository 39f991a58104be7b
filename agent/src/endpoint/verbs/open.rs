//! Device and settings of one end, and what is said of them: to the peer, and in the record.

use std::{collections::BTreeMap, hash::BuildHasher};

use railgauge_wire::{
    failure::Failure,
    link::{Joining, LinkSpec, VerbsEndpoint},
};

use super::{choice::Choice, settings::Settings};
use crate::{memory::place, system::tree::Tree, verbs::device::Limits};

/// The device that `spec` asks for, its limits, and the settings resolved against it.
pub(crate) fn choose(spec: &LinkSpec) -> Result<(Choice, Limits, Settings), Failure> {
    let choice = Choice::new(spec)?;
    let limits = choice.domain.device().limits()?;
    let settings = Settings::new(spec, &limits, choice.port.mtu, choice.link_layer)?;
    Ok((choice, limits, settings))
}

/// Moves the calling thread beside the device, and returns what the record says of both. To be called before memory is
/// taken.
pub(crate) fn settle(choice: &Choice, settings: &Settings) -> Result<BTreeMap<String, String>, Failure> {
    let device = choice.domain.device();
    let numa = format!("sys/class/infiniband/{}/device/numa_node", device.name());
    let mut notes = place::settle(&Tree::host(), settings.core, &numa)?;
    notes.insert("libibverbs".to_owned(), device.library().file().to_owned());
    notes.insert("port".to_owned(), choice.name());
    notes.extend(choice.driver.name.clone().map(|driver| ("driver".to_owned(), driver)));
    if settings.joining != Joining::RdmaCm
        && let Some(pkey) = choice.pkey
    {
        notes.insert("pkey".to_owned(), pkey.hex());
        notes.insert("pkey_index".to_owned(), pkey.index.to_string());
    }
    notes.extend(choice.gid.map(|gid| ("gid_index".to_owned(), gid.index.to_string())));
    Ok(notes)
}

/// What the peer must know of an end that has no queue pairs and no memory yet.
pub(crate) fn described(choice: &Choice, settings: &Settings) -> VerbsEndpoint {
    VerbsEndpoint {
        qp_numbers: Vec::new(),
        psns: Vec::new(),
        lid: choice.port.lid,
        gid: choice.gid.map(|gid| gid.hex()).unwrap_or_default(),
        gid_type: choice.gid.map(|gid| gid.kind.word().to_owned()).unwrap_or_default(),
        mtu: settings.mtu,
        address: 0,
        length: railgauge_wire::unit::Bytes::ZERO,
        rkey: 0,
        polled: false,
        grh_required: choice.port.grh_required,
        pkey: choice.pkey.map(|pkey| pkey.value),
        control: None,
        max_reads: settings.reads,
        qkey: 0,
        cm_port: None,
        cm_address: None,
    }
}

/// Random first packet sequence numbers: packets of an earlier queue pair with the same number then do not fit.
pub(crate) fn psns(count: usize) -> Vec<u32> {
    let random = std::hash::RandomState::new();
    (0..count).map(|i| random.hash_one(i) as u32 & 0x00ff_ffff).collect()
}
