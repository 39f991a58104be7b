//! What AMD SMI says of the GPUs of this host.

use railgauge_wire::{
    facts::{GPUS, Gpu, MemoryFaults, serial_number},
    unit::Bytes,
};

use super::{CLOCK_GFX, CLOCK_MEMORY, HOTSPOT, Known, NoSmi, SUCCESS, Smi, VRAM, layout, smi, state};
use crate::{
    gpu::{cards::others_at_rest, present},
    system::tree::Tree,
};

/// `AMDSMI_GPU_UUID_SIZE`.
const UUID: usize = 38;

/// All GPUs of AMD in the order of PCI addresses. Where AMD SMI tells nothing of GPUs that are on the PCI bus, they are there with their
/// addresses alone, and why is noted. The host's graphics ([`present::amd`]) are none, though AMD SMI tells of them.
pub(crate) fn gpus(tree: &Tree) -> Vec<Gpu> {
    let on_bus = present::amd(tree);
    if on_bus.is_empty() {
        // Such a host need not have AMD SMI.
        return Vec::new();
    }
    let why = match smi().and_then(|smi| Ok((smi, smi.gpus().map_err(NoSmi::Start)?))) {
        Ok((smi, mut known)) => {
            known.retain(|(pci, _)| on_bus.iter().any(|gpu| slot(gpu) == slot(pci)));
            if known.len() >= on_bus.len() {
                return (0..).zip(known).map(|(index, (pci, known))| gpu(smi, index, pci, known)).collect();
            }
            format!("AMD SMI tells of {} of {} on the PCI bus", known.len(), counted(on_bus.len()))
        }
        Err(why) => {
            let addresses = if on_bus.len() == 1 { "address is" } else { "addresses are" };
            format!("of {} only the PCI {addresses} known: {why}", counted(on_bus.len()))
        }
    };
    tree.note(GPUS, &why);
    (0..).zip(on_bus).map(|(index, pci)| Gpu { index, pci: Some(pci), ..Gpu::default() }).collect()
}

/// `2 GPUs of AMD`.
fn counted(gpus: usize) -> String {
    format!("{gpus} GPU{} of AMD", if gpus == 1 { "" } else { "s" })
}

/// A PCI address without its function, which numbers the partitions of a GPU.
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
        throttled: state::holds(smi, known)
            .map(|holds| holds.into_iter().map(|hold| hold.words().to_owned()).collect()),
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

/// Pages of memory that were taken out of use.
fn bad_pages(smi: &Smi, known: Known) -> Option<u32> {
    let ask = smi.bad_pages?;
    let mut count = 0;
    // SAFETY: the place is valid for writes; without room for pages it only counts them.
    let status = unsafe { ask(known.handle, &raw mut count, std::ptr::null_mut()) };
    (status == SUCCESS).then_some(count)
}
