//! GPUs by AMD SMI, for repeated readings.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use railgauge_wire::{
    Bytes, GPUS, Gather, Gpu, GpuReading, Hold, MemoryFaults, facts::serial_number, gpu_state::counter,
};

use super::super::{
    Cards, Lasting, Unread, Vendor,
    cards::{others, others_at_rest},
    present,
};
use super::{
    layout,
    smi::{CLOCK_GFX, CLOCK_MEMORY, HOTSPOT, Known, MEMORY, SUCCESS, Smi, VRAM, not_started, smi},
};
use crate::{bench::clock, system::tree::Tree};

#[derive(Default)]
pub(crate) struct AmdCards {
    open: BTreeMap<String, Card>,
}

struct Card {
    known: Known,
    lasting: Lasting,
    /// Queries so far that were answered with an error of xGMI.
    xgmi: u64,
}

impl Cards for AmdCards {
    fn read(&mut self, pci: &str) -> Result<GpuReading, Unread> {
        let at = clock::now();
        let (smi, card) = self.card(pci)?;
        let known = card.known;
        Ok(GpuReading {
            at,
            sm_mhz: smi.clock(known, CLOCK_GFX).0,
            memory_mhz: smi.clock(known, CLOCK_MEMORY).0,
            watts: smi.watts(known),
            celsius: smi.degrees(known, HOTSPOT),
            memory_celsius: smi.degrees(known, MEMORY),
            held: holds(smi, known),
            pcie: smi.pcie(known).and_then(|link| link.now),
            others: others(|| smi.programs(known)),
        })
    }

    fn counters(&mut self, pci: &str) -> Result<BTreeMap<String, u64>, Unread> {
        let (smi, card) = self.card(pci)?;
        let ecc = smi.ecc(card.known);
        let xgmi = smi.xgmi_error(card.known).map(|error| {
            card.xgmi += u64::from(error);
            card.xgmi
        });
        let told = [
            (counter::PCIE_REPLAYS, smi.pcie(card.known).and_then(|link| link.replays)),
            (counter::ECC_CORRECTED, ecc.map(|(corrected, _)| corrected)),
            (counter::ECC_UNCORRECTED, ecc.map(|(_, uncorrected)| uncorrected)),
            (counter::XGMI_ERRORS, xgmi),
        ];
        Ok(told.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).gathered())
    }

    fn lasting(&mut self, pci: &str) -> Result<Lasting, Unread> {
        Ok(self.card(pci)?.1.lasting)
    }
}

impl AmdCards {
    fn card(&mut self, pci: &str) -> Result<(&'static Smi, &mut Card), Unread> {
        let smi = smi().map_err(|why| Unread::NoLibrary(why.to_string()))?;
        Ok(match self.open.entry(pci.to_owned()) {
            Entry::Occupied(card) => (smi, card.into_mut()),
            Entry::Vacant(place) => (smi, place.insert(open(smi, pci)?)),
        })
    }
}

fn unknown(pci: &str, why: String) -> Unread {
    Unread::Gpu { of: Vendor::Amd, pci: pci.to_owned(), why }
}

fn open(smi: &Smi, pci: &str) -> Result<Card, Unread> {
    let gpus = smi.gpus().map_err(|why| unknown(pci, why.to_string()))?;
    let found = (0..).zip(gpus).find(|(_, (address, _))| address == pci);
    let (index, (_, known)) = found.ok_or_else(|| unknown(pci, "it is not one of those it lists".to_owned()))?;
    let lasting = Lasting {
        index: Some(index),
        best_mhz: smi.clock(known, CLOCK_GFX).1.zip(smi.clock(known, CLOCK_MEMORY).1),
        best_pcie: smi.pcie(known).and_then(|link| link.best),
        limit_watts: smi.limit_watts(known),
        is_amd: true,
    };
    Ok(Card { known, lasting, xgmi: 0 })
}

pub(super) fn holds(smi: &Smi, known: Known) -> Option<BTreeSet<Hold>> {
    let seen = smi.violations(known)?;
    let all = [(seen.power, Hold::PowerCap), (seen.heat, Hold::HotHardware)];
    Some(all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, hold)| hold).collect())
}

/// `AMDSMI_GPU_UUID_SIZE`.
const UUID: usize = 38;

/// In the order of PCI addresses. GPUs on the PCI bus without answers from AMD SMI have only their addresses, and the reason is noted.
/// Excludes the host's graphics ([`present::amd`]), which AMD SMI lists.
pub(crate) fn gpus(tree: &Tree) -> Vec<Gpu> {
    let on_bus = present::amd(tree);
    if on_bus.is_empty() {
        // Such a host need not have AMD SMI.
        return Vec::new();
    }
    let why = match smi().and_then(|smi| Ok((smi, smi.gpus().map_err(not_started)?))) {
        Ok((smi, mut known)) => {
            known.retain(|(pci, _)| on_bus.iter().any(|gpu| slot(gpu) == slot(pci)));
            if known.len() >= on_bus.len() {
                return (0..).zip(known).map(|(index, (pci, known))| gpu(smi, index, pci, known)).collect();
            }
            format!("AMD SMI lists {} of {} on the PCI bus", known.len(), counted(on_bus.len()))
        }
        Err(why) => {
            let addresses = if on_bus.len() == 1 { "address is" } else { "addresses are" };
            format!("of {} only the PCI {addresses} known: {why}", counted(on_bus.len()))
        }
    };
    tree.note(GPUS, &why);
    (0..).zip(on_bus).map(|(index, pci)| Gpu { index, pci: Some(pci), ..Gpu::default() }).collect()
}

fn counted(gpus: usize) -> String {
    format!("{gpus} AMD GPU{}", if gpus == 1 { "" } else { "s" })
}

/// Without the function, which numbers the partitions of a GPU.
fn slot(pci: &str) -> &str {
    pci.rsplit_once('.').map_or(pci, |(slot, _)| slot)
}

fn gpu(smi: &Smi, index: u32, pci: String, known: Known) -> Gpu {
    let handle = known.handle;
    // SAFETY: there is room for more than the structure.
    let asic = smi.told(|to| unsafe { (smi.asic)(handle, to) });
    // SAFETY: as above.
    let board = smi.told(|to| unsafe { (smi.board)(handle, to) });
    // SAFETY: as above.
    let driver = smi.told(|to| unsafe { (smi.driver)(handle, to) });
    let name = |(at, length): (usize, usize)| move |space: &layout::Space| space.text(at, length);
    let link = smi.pcie(known).unwrap_or_default();
    let serial = board.as_ref().and_then(name(smi.layout.product_serial));
    Gpu {
        index,
        uuid: uuid(smi, known),
        serial: serial.and_then(|serial| serial_number(&serial).map(str::to_owned)),
        part_number: board.as_ref().and_then(name(layout::NAME)),
        name: asic.as_ref().and_then(name(layout::NAME)),
        driver: driver.as_ref().and_then(name(layout::DRIVER_VERSION)),
        pci: Some(pci),
        pcie: link.now,
        pcie_max: link.best,
        memory_bytes: memory(smi, known),
        ecc: smi.memory_has_ecc(known),
        clock_mhz: both(smi.clock(known, CLOCK_GFX)),
        memory_clock_mhz: both(smi.clock(known, CLOCK_MEMORY)),
        throttled: holds(smi, known).map(|holds| holds.into_iter().map(|hold| hold.words().to_owned()).collect()),
        memory_faults: MemoryFaults {
            uncorrected: smi.ecc(known).map(|(_, uncorrected)| uncorrected),
            retired_pages: bad_pages(smi, known),
            ..MemoryFaults::default()
        },
        temperature: smi.degrees(known, HOTSPOT),
        power_watts: smi.watts(known).zip(smi.limit_watts(known)),
        processes: others_at_rest(|| smi.programs(known)),
        ..Gpu::default()
    }
}

fn both((now, best): (Option<u32>, Option<u32>)) -> Option<(u32, u32)> {
    now.zip(best)
}

fn uuid(smi: &Smi, known: Known) -> Option<String> {
    let mut space = layout::Space::default();
    let mut length = UUID as u32;
    // SAFETY: there is room for more than the length says.
    let status = unsafe { (smi.uuid)(known.handle, &raw mut length, space.place().cast()) };
    (status == SUCCESS).then(|| space.text(0, UUID)).flatten()
}

fn memory(smi: &Smi, known: Known) -> Option<Bytes> {
    let mut total = 0;
    // SAFETY: the place is valid for writes.
    let status = unsafe { (smi.memory_total)(known.handle, VRAM, &raw mut total) };
    (status == SUCCESS).then_some(Bytes(total)).filter(|total| !total.is_zero())
}

fn bad_pages(smi: &Smi, known: Known) -> Option<u32> {
    let ask = smi.bad_pages?;
    let mut count = 0;
    // SAFETY: the place is valid for writes; without room for pages it only counts them.
    let status = unsafe { ask(known.handle, &raw mut count, std::ptr::null_mut()) };
    (status == SUCCESS).then_some(count)
}
