//! What AMD SMI says of a GPU now, for whoever asks again and again.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::{
    gather::Gather,
    gpu_state::{GpuReading, Hold, counter},
};

use super::{CLOCK_GFX, CLOCK_MEMORY, HOTSPOT, Known, MEMORY, Smi, smi};
use crate::{
    bench::clock,
    gpu::cards::{Cards, Informant, Lasting, Unread, others},
};

/// The GPUs of this host that were asked for, by PCI address.
#[derive(Default)]
pub(crate) struct AmdCards {
    open: BTreeMap<String, Card>,
}

struct Card {
    known: Known,
    lasting: Lasting,
    /// Questions so far that were answered with an error of xGMI.
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
        let smi = smi().map_err(|why| Unread::NoLibrary(Informant::AmdSmi, why.to_string()))?;
        if !self.open.contains_key(pci) {
            self.open.insert(pci.to_owned(), open(smi, pci)?);
        }
        let gone = || unknown(pci, "it is not open".to_owned());
        self.open.get_mut(pci).map(|card| (smi, card)).ok_or_else(gone)
    }
}

fn unknown(pci: &str, why: String) -> Unread {
    Unread::Gpu { of: Informant::AmdSmi, pci: pci.to_owned(), why }
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
