//! GPUs by NVML, for repeated readings: NVML and its GPUs stay open.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::{Arc, OnceLock},
};

use nvml_wrapper_sys::bindings::{
    nvmlClocksThrottleReasonHwPowerBrakeSlowdown, nvmlClocksThrottleReasonHwSlowdown,
    nvmlClocksThrottleReasonHwThermalSlowdown, nvmlClocksThrottleReasonSwPowerCap,
    nvmlClocksThrottleReasonSwThermalSlowdown, nvmlClocksThrottleReasonSyncBoost,
};
use railgauge_wire::{Gather, GpuReading, Hold, MOST_XIDS, gpu_state::counter};

use super::{
    CHIP, CLOCK_MEMORY, CLOCK_SM, Cards, Lasting, NVLINKS, Nvml, Unread, Vendor,
    cards::others,
    nvml::{CRC_FLIT, Device, Events, LOST, NOT_FOUND, RECOVERY, REPLAY, id},
};
use crate::bench::clock;

#[derive(Default)]
pub(crate) struct NvidiaCards {
    open: BTreeMap<String, Card>,
    /// Events of lost GPUs, until they are read: the last ones say why.
    lost: BTreeMap<String, Option<Events>>,
}

struct Card {
    device: Device,
    lasting: Lasting,
    /// `None` where the driver sends none to this process.
    events: Option<Events>,
}

impl Cards for NvidiaCards {
    fn read(&mut self, pci: &str) -> Result<GpuReading, Unread> {
        let at = clock::now();
        let device = &self.card(pci)?.device;
        // Missing values of a present GPU are unknown; a lost GPU is reported.
        let nvml = device.of();
        let sm = device.choice(nvml.clock, CLOCK_SM);
        if let Err(LOST | NOT_FOUND) = sm {
            let events = self.open.remove(pci).and_then(|card| card.events);
            self.lost.insert(pci.to_owned(), events);
            return Err(Unread::Lost(pci.to_owned()));
        }
        let memory = device.fields(&[id::NVML_FI_DEV_MEMORY_TEMP]);
        Ok(GpuReading {
            at,
            sm_mhz: sm.ok(),
            memory_mhz: device.choice(nvml.clock, CLOCK_MEMORY).ok(),
            watts: device.number(nvml.power).map(watts),
            celsius: device.choice(nvml.temperature, CHIP).ok(),
            memory_celsius: memory[0].and_then(|degrees| u32::try_from(degrees).ok()).filter(|degrees| *degrees > 0),
            held: device.held().map(holds),
            pcie: device.number(nvml.pcie_generation).zip(device.number(nvml.pcie_width)),
            others: others(|| device.programs()),
        })
    }

    fn counters(&mut self, pci: &str) -> Result<BTreeMap<String, u64>, Unread> {
        let device = &self.card(pci)?.device;
        let asked: Vec<u32> = COUNTERS.iter().flat_map(|(_, kinds)| kinds.iter().copied().flatten().copied()).collect();
        let mut told = device.fields(&asked).into_iter();
        let value = |(name, kinds): &(&str, &[&[u32]])| {
            // Every field is read, whichever counts.
            let sums: Vec<Option<u64>> = kinds
                .iter()
                .map(|fields| fields.iter().map(|_| told.next().flatten()).collect::<Vec<_>>().into_iter().sum())
                .collect();
            Some(((*name).to_owned(), sums.into_iter().flatten().next()?))
        };
        let mut counted: BTreeMap<String, u64> = COUNTERS.iter().filter_map(value).gathered();
        // Without a summed field, each link is queried.
        for (name, kind) in LINK_ERRORS {
            if !counted.contains_key(name) {
                let links = (0..NVLINKS).filter_map(|link| device.counter(device.of().link_errors, link, kind));
                let told = links.reduce(u64::saturating_add);
                counted.extend(told.map(|sum| (name.to_owned(), sum)));
            }
        }
        Ok(counted)
    }

    fn lasting(&mut self, pci: &str) -> Result<Lasting, Unread> {
        Ok(self.card(pci)?.lasting)
    }

    fn xids(&mut self, pci: &str) -> Result<Option<Vec<u32>>, Unread> {
        match self.lost.remove(pci) {
            Some(events) => Ok(events.as_ref().map(arrived)),
            None => Ok(self.card(pci)?.events.as_ref().map(arrived)),
        }
    }
}

impl NvidiaCards {
    fn card(&mut self, pci: &str) -> Result<&Card, Unread> {
        Ok(match self.open.entry(pci.to_owned()) {
            Entry::Occupied(card) => card.into_mut(),
            Entry::Vacant(place) => place.insert(open(pci)?),
        })
    }
}

fn arrived(events: &Events) -> Vec<u32> {
    // An endless stream of events waits for the next call.
    std::iter::from_fn(|| events.next()).take(MOST_XIDS).collect()
}

/// Counters as sums of fields. Several kinds of fields are for GPUs of different ages.
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

const LINK_ERRORS: [(&str, u32); 3] =
    [(counter::NVLINK_REPLAYS, REPLAY), (counter::NVLINK_RECOVERIES, RECOVERY), (counter::NVLINK_CRC, CRC_FLIT)];

/// Opened once for the life of the process: opening takes as long as all readings of a run.
fn nvml() -> Result<&'static Arc<Nvml>, Unread> {
    static NVML: OnceLock<Result<Arc<Nvml>, Unread>> = OnceLock::new();
    let start = || Nvml::start().map_err(|error| Unread::NoLibrary(format!("NVML is not there: {error}")));
    NVML.get_or_init(start).as_ref().map_err(Clone::clone)
}

pub(super) fn starts() -> bool {
    nvml().is_ok()
}

fn open(pci: &str) -> Result<Card, Unread> {
    let unknown = |why: String| Unread::Gpu { of: Vendor::Nvidia, pci: pci.to_owned(), why };
    let device = nvml()?.by_pci(pci).map_err(|why| unknown(why.to_string()))?;
    let nvml = device.of();
    let best = |kind| device.choice(nvml.best_clock, kind).ok();
    let lasting = Lasting {
        index: device.number(nvml.index),
        best_mhz: best(CLOCK_SM).zip(best(CLOCK_MEMORY)),
        best_pcie: device.number(nvml.best_pcie_generation).zip(device.number(nvml.best_pcie_width)),
        limit_watts: device.number(nvml.enforced_power_limit).map(watts),
        is_amd: false,
    };
    let events = device.events();
    Ok(Card { device, lasting, events })
}

pub(super) fn watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) / 1e3
}

/// Excludes idle GPUs and clocks set by a user.
pub(super) fn holds(reasons: u64) -> BTreeSet<Hold> {
    let bits = [
        (nvmlClocksThrottleReasonSwPowerCap, Hold::PowerCap),
        (nvmlClocksThrottleReasonHwSlowdown, Hold::HardwareSlowdown),
        (nvmlClocksThrottleReasonSyncBoost, Hold::SyncBoost),
        (nvmlClocksThrottleReasonSwThermalSlowdown, Hold::HotDriver),
        (nvmlClocksThrottleReasonHwThermalSlowdown, Hold::HotHardware),
        (nvmlClocksThrottleReasonHwPowerBrakeSlowdown, Hold::PowerBrake),
    ];
    bits.into_iter().filter(|(bit, _)| reasons & u64::from(*bit) != 0).map(|(_, hold)| hold).collect()
}
