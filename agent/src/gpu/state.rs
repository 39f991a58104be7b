//! What NVML says of a GPU now, for whoever asks again and again: NVML and what is known of each GPU stay open.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use nvml_wrapper::{
    Device, EventSet, Nvml,
    bitmasks::{device::ThrottleReasons, event::EventTypes},
    enum_wrappers::{
        device::{Clock, TemperatureSensor},
        nv_link::ErrorCounter,
    },
    enums::{device::SampleValue, event::XidError},
    error::NvmlError,
    structs::device::FieldId,
    sys_exports::field_id as id,
};
use railgauge_wire::gpu_state::{GpuReading, Hold, MOST_XIDS, counter};

use super::{
    cards::{Informant, Lasting, Unread, others},
    facts::NVLINKS,
};
use crate::bench::clock;

/// The GPUs of this host, by PCI address.
#[derive(Default)]
pub(crate) struct Cards {
    open: BTreeMap<String, Card>,
    /// Where Xids of GPUs arrive that NVML has lost, until somebody asks: the last ones say why.
    lost: BTreeMap<String, Option<EventSet<'static>>>,
}

struct Card {
    device: Device<'static>,
    lasting: Lasting,
    /// Where Xids arrive; `None` where the driver sends none to this process.
    events: Option<EventSet<'static>>,
}

impl Cards {
    /// What a GPU does now.
    ///
    /// # Errors
    /// NVML is not there, or does not know the GPU any more.
    pub(crate) fn read(&mut self, pci: &str) -> Result<GpuReading, Unread> {
        let at = clock::now();
        let device = &self.card(pci)?.device;
        // What a GPU that is there does not tell is not known; one that has gone is told.
        let sm = device.clock_info(Clock::SM);
        if let Err(NvmlError::GpuLost | NvmlError::NotFound) = &sm {
            let events = self.open.remove(pci).and_then(|card| card.events);
            self.lost.insert(pci.to_owned(), events);
            return Err(Unread::Lost(pci.to_owned()));
        }
        let memory = fields(device, &[id::NVML_FI_DEV_MEMORY_TEMP]);
        Ok(GpuReading {
            at,
            sm_mhz: sm.ok(),
            memory_mhz: device.clock_info(Clock::Memory).ok(),
            watts: device.power_usage().ok().map(watts),
            celsius: device.temperature(TemperatureSensor::Gpu).ok(),
            memory_celsius: memory[0].and_then(|degrees| u32::try_from(degrees).ok()).filter(|degrees| *degrees > 0),
            held: device.current_throttle_reasons().ok().map(holds),
            pcie: device.current_pcie_link_gen().ok().zip(device.current_pcie_link_width().ok()),
            others: programs(device),
        })
    }

    /// What the driver has counted of a GPU's errors; what it does not count is not there.
    ///
    /// # Errors
    /// As [`Cards::read`].
    pub(crate) fn counters(&mut self, pci: &str) -> Result<BTreeMap<String, u64>, Unread> {
        let device = &self.card(pci)?.device;
        let asked: Vec<u32> = COUNTERS.iter().flat_map(|(_, kinds)| kinds.iter().copied().flatten().copied()).collect();
        let mut told = fields(device, &asked).into_iter();
        let value = |(name, kinds): &(&str, &[&[u32]])| {
            // Every field is taken from the answer, whichever counts.
            let sums: Vec<Option<u64>> = kinds
                .iter()
                .map(|fields| fields.iter().map(|_| told.next().flatten()).collect::<Vec<_>>().into_iter().sum())
                .collect();
            Some(((*name).to_owned(), sums.into_iter().flatten().next()?))
        };
        let mut counted: BTreeMap<String, u64> = COUNTERS.iter().filter_map(value).collect();
        // Where no field sums them up, links are asked one by one.
        for (name, kind) in LINK_ERRORS {
            if !counted.contains_key(name) {
                let links = (0..NVLINKS).map(|link| device.link_wrapper_for(link).error_counter(kind));
                let told = links.filter_map(Result::ok).reduce(u64::saturating_add);
                counted.extend(told.map(|sum| (name.to_owned(), sum)));
            }
        }
        Ok(counted)
    }

    /// What does not change.
    ///
    /// # Errors
    /// As [`Cards::read`].
    pub(crate) fn lasting(&mut self, pci: &str) -> Result<Lasting, Unread> {
        Ok(self.card(pci)?.lasting)
    }

    /// Xids that the driver told of a GPU since this was asked last; `None` where it tells none to this process.
    ///
    /// # Errors
    /// As [`Cards::read`].
    pub(crate) fn xids(&mut self, pci: &str) -> Result<Option<Vec<u32>>, Unread> {
        match self.lost.remove(pci) {
            Some(events) => Ok(events.as_ref().map(arrived)),
            None => Ok(self.card(pci)?.events.as_ref().map(arrived)),
        }
    }

    fn card(&mut self, pci: &str) -> Result<&Card, Unread> {
        if !self.open.contains_key(pci) {
            let card = open(pci)?;
            self.open.insert(pci.to_owned(), card);
        }
        let gone = || unknown(pci, "it is not open".to_owned());
        self.open.get(pci).ok_or_else(gone)
    }
}

/// The Xids that have arrived.
fn arrived(events: &EventSet<'static>) -> Vec<u32> {
    let mut found = Vec::new();
    // A driver that sends events without end is left to the next question.
    while found.len() < MOST_XIDS
        && let Ok(event) = events.wait(0)
    {
        match event.event_data {
            Some(XidError::Value(xid)) => found.push(u32::try_from(xid).unwrap_or(u32::MAX)),
            Some(XidError::Unknown) | None => found.push(UNKNOWN_XID),
        }
    }
    found
}

/// NVML's number of an Xid that it does not know.
const UNKNOWN_XID: u32 = 999;

/// What is counted, and the fields whose sum it is. Where there are several kinds of fields, GPUs of different ages have one or the other.
const COUNTERS: &[(&str, &[&[u32]])] = &[
    (counter::PCIE_REPLAYS, &[&[id::NVML_FI_DEV_PCIE_REPLAY_COUNTER]]),
    (
        counter::NVLINK_REPLAYS,
        &[&[id::NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL], &[id::NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY]],
    ),
    (
        counter::NVLINK_RECOVERIES,
        &[&[id::NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL], &[id::NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY]],
    ),
    (
        counter::NVLINK_CRC,
        &[&[id::NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL], &[id::NVML_FI_DEV_NVLINK_ERROR_DL_CRC]],
    ),
    (counter::ECC_CORRECTED, &[&[id::NVML_FI_DEV_ECC_SBE_VOL_TOTAL]]),
    (counter::ECC_UNCORRECTED, &[&[id::NVML_FI_DEV_ECC_DBE_VOL_TOTAL]]),
    (counter::ROWS_REMAPPED, &[&[id::NVML_FI_DEV_REMAPPED_COR, id::NVML_FI_DEV_REMAPPED_UNC]]),
];

/// What NVLinks count, each link by itself.
const LINK_ERRORS: [(&str, ErrorCounter); 3] = [
    (counter::NVLINK_REPLAYS, ErrorCounter::DlReplay),
    (counter::NVLINK_RECOVERIES, ErrorCounter::DlRecovery),
    (counter::NVLINK_CRC, ErrorCounter::DlCrcFlit),
];

/// NVML, opened once for the life of the process: opening it takes as long as all readings of a run.
fn nvml() -> Result<&'static Nvml, Unread> {
    static NVML: OnceLock<Result<Nvml, Unread>> = OnceLock::new();
    let start =
        || Nvml::init().map_err(|error| Unread::NoLibrary(Informant::Nvml, format!("NVML is not there: {error}")));
    NVML.get_or_init(start).as_ref().map_err(Clone::clone)
}

/// Whether NVML is there and starts.
pub(super) fn starts() -> bool {
    nvml().is_ok()
}

fn unknown(pci: &str, why: String) -> Unread {
    Unread::Gpu { of: Informant::Nvml, pci: pci.to_owned(), why }
}

fn open(pci: &str) -> Result<Card, Unread> {
    let nvml = nvml()?;
    let device = nvml.device_by_pci_bus_id(pci).map_err(|error| unknown(pci, error.to_string()))?;
    let best = |kind| device.max_clock_info(kind).ok();
    let lasting = Lasting {
        index: device.index().ok(),
        best_mhz: best(Clock::SM).zip(best(Clock::Memory)),
        best_pcie: device.max_pcie_link_gen().ok().zip(device.max_pcie_link_width().ok()),
        limit_watts: device.enforced_power_limit().ok().map(watts),
        is_amd: false,
    };
    let set = nvml.create_event_set().ok();
    let events = set.and_then(|set| device.register_events(EventTypes::CRITICAL_XID_ERROR, set).ok());
    Ok(Card { device, lasting, events })
}

/// Programs beside this agent, and what it started, that have a context on a GPU; `None` where NVML does not list the agent's own.
fn programs(device: &Device<'_>) -> Option<u32> {
    others(|| Some(device.running_compute_processes().ok()?.into_iter().map(|program| program.pid).collect()))
}

/// NVML counts milliwatts.
fn watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) / 1e3
}

/// What holds clocks down. An idle GPU and clocks that somebody set are none.
pub(super) fn holds(reasons: ThrottleReasons) -> BTreeSet<Hold> {
    let bits = [
        (ThrottleReasons::SW_POWER_CAP, Hold::PowerCap),
        (ThrottleReasons::HW_SLOWDOWN, Hold::HardwareSlowdown),
        (ThrottleReasons::SYNC_BOOST, Hold::SyncBoost),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, Hold::HotDriver),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, Hold::HotHardware),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, Hold::PowerBrake),
    ];
    bits.into_iter().filter(|(bit, _)| reasons.contains(*bit)).map(|(_, hold)| hold).collect()
}

/// Whole numbers among NVML's fields, in the order of the question; `None` for what it does not tell.
pub(super) fn fields(device: &Device<'_>, ids: &[u32]) -> Vec<Option<u64>> {
    let asked: Vec<FieldId> = ids.iter().map(|id| FieldId(*id)).collect();
    let Ok(told) = device.field_values_for(&asked) else { return vec![None; ids.len()] };
    let value = |sample: Result<nvml_wrapper::struct_wrappers::device::FieldValueSample, NvmlError>| match sample
        .ok()?
        .value
        .ok()?
    {
        SampleValue::U32(value) => Some(u64::from(value)),
        SampleValue::U64(value) => Some(value),
        SampleValue::F64(_) | SampleValue::I64(_) => None,
    };
    let mut values: Vec<Option<u64>> = told.into_iter().map(value).collect();
    values.resize(ids.len(), None);
    values
}
