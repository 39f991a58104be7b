//! Monitors of the module in a port: temperature, supply voltage, and light and bias current of each lane.
//!
//! | standard | kinds of module (SFF-8024, table 4-1) | tables of the monitors |
//! | --- | --- | --- |
//! | SFF-8472 | SFP, SFP+, SFP28 | rev 12.4: table 8-5 (A0h 92), 9-6 (calibration, A2h 56–91), 9-11 (A2h 96–105) |
//! | SFF-8636 | QSFP, QSFP+, QSFP28 | rev 2.10a: tables 6-8 and 6-9 (bytes 22–57), 6-26 (byte 220) |
//! | CMIS | QSFP-DD, OSFP, SFP-DD, later QSFP | rev 5.2: tables 8-4 (byte 2), 8-10 (14–17), 8-46 and 8-47 (01h 159, 160), 8-82 (11h 154–201) |
//!
//! Steps are the same in all: 1/256 °C, 100 µV, 0.1 µW, 2 µA. Fields have their high byte first. A lane without light reads 0, which has
//! no logarithm: it is reported as −40 dBm, the smallest step, where the module has a monitor for it. A passive cable has none.

use std::{collections::BTreeMap, io};

use crate::system::netlink::{DIAGNOSTICS, MODULE, Part};

/// By name: `module/temperature_c`.
pub(super) type Gauges = BTreeMap<String, f64>;

pub(super) struct Memory {
    from: usize,
    bytes: Vec<u8>,
}

impl Memory {
    pub(super) fn new(from: u8, bytes: Vec<u8>) -> Self {
        Self { from: from.into(), bytes }
    }

    /// 0 where it was not read.
    fn byte(&self, at: usize) -> u8 {
        at.checked_sub(self.from).and_then(|at| self.bytes.get(at)).copied().unwrap_or(0)
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.byte(at), self.byte(at + 1)])
    }

    fn words(&self, at: usize, lanes: usize) -> Vec<u16> {
        (0..lanes).map(|lane| self.word(at + 2 * lane)).collect()
    }

    fn float(&self, at: usize) -> f64 {
        f32::from_be_bytes(std::array::from_fn(|n| self.byte(at + n))).into()
    }
}

/// Empty without monitors.
pub(super) fn read(mut part: impl FnMut(Part) -> io::Result<Vec<u8>>) -> io::Result<Gauges> {
    let mut memory = |address, page, offset, length| {
        Ok::<_, io::Error>(Memory::new(offset, part(Part { address, page, offset, length })?))
    };
    // By the module's identifier (SFF-8024, table 4-1).
    match memory(MODULE, 0, 0, 3)?.byte(0) {
        0x03 => {
            let kind = memory(MODULE, 0, KIND, 1)?;
            if kind.byte(KIND.into()) & MONITORED == 0 {
                return Ok(Gauges::new());
            }
            Ok(sff_8472(&kind, &memory(DIAGNOSTICS, 0, 56, 50)?))
        }
        0x0c | 0x0d | 0x11 => {
            let lower = memory(MODULE, 0, 0, 58)?;
            Ok(sff_8636(&lower, &memory(MODULE, 0, OPTIONS, 1)?))
        }
        // QSFP-DD, OSFP, SFP-DD, DSFP, and with CMIS: QSFP, SFP-DD, SFP.
        0x18 | 0x19 | 0x1a | 0x1b | 0x1e | 0x1f | 0x20 => {
            let lower = memory(MODULE, 0, 0, 18)?;
            if lower.byte(2) & FLAT != 0 {
                return Ok(Gauges::new());
            }
            let monitors = memory(MODULE, 0x01, MONITORS, 2)?;
            Ok(cmis(&lower, &monitors, &memory(MODULE, 0x11, 154, 48)?))
        }
        _ => Ok(Gauges::new()),
    }
}

#[derive(Default)]
struct Readings {
    temperature: Option<f64>,
    voltage: Option<f64>,
    /// By lane, in 0.1 µW.
    sent: Vec<f64>,
    /// By lane, in 0.1 µW.
    received: Vec<f64>,
    /// By lane, in 2 µA.
    bias: Vec<f64>,
}

impl Readings {
    fn gauges(&self) -> Gauges {
        let mut found = Gauges::new();
        let mut tell = |name: String, value: f64| {
            if value.is_finite() {
                found.insert(format!("module/{name}"), value);
            }
        };
        for (name, value) in [("temperature_c", self.temperature), ("voltage_v", self.voltage)] {
            if let Some(value) = value {
                tell(name.into(), value);
            }
        }
        let decibels = |tenths: &f64| 10.0 * (tenths.max(1.0) / 10_000.0).log10();
        for (name, lanes) in [("tx_power_dbm", &self.sent), ("rx_power_dbm", &self.received)] {
            for (lane, value) in lanes.iter().enumerate() {
                tell(format!("{name}_lane{}", lane + 1), decibels(value));
            }
        }
        for (lane, steps) in self.bias.iter().enumerate() {
            tell(format!("bias_ma_lane{}", lane + 1), steps * 0.002);
        }
        found
    }
}

fn celsius(raw: u16) -> f64 {
    f64::from(raw.cast_signed()) / 256.0
}

fn floats(raw: &[u16]) -> Vec<f64> {
    raw.iter().copied().map(f64::from).collect()
}

/// SFF-8472: byte of A0h that says how diagnostics are made.
const KIND: u8 = 92;
const MONITORED: u8 = 1 << 6;
/// Needs calibration with the module's constants.
const EXTERNAL: u8 = 1 << 4;

/// From A0h byte 92, and A2h bytes 56 to 105.
fn sff_8472(kind: &Memory, diagnostics: &Memory) -> Gauges {
    let d = diagnostics;
    let external = kind.byte(KIND.into()) & EXTERNAL != 0;
    // Slope: unsigned, in steps of 1/256; offset: signed, in steps of the reading.
    let linear = |raw: f64, at: usize| match external {
        true => raw * f64::from(d.word(at)) / 256.0 + f64::from(d.word(at + 2).cast_signed()),
        false => raw,
    };
    let light = f64::from(d.word(104));
    // Five constants, that of the fourth power first.
    let received = match external {
        true => [56, 60, 64, 68, 72].into_iter().fold(0.0, |sum, at| sum * light + d.float(at)),
        false => light,
    };
    Readings {
        temperature: Some(linear(f64::from(d.word(96).cast_signed()), 84) / 256.0),
        voltage: Some(linear(f64::from(d.word(98)), 88) / 10_000.0),
        sent: vec![linear(f64::from(d.word(102)), 80)],
        received: vec![received],
        bias: vec![linear(f64::from(d.word(100)), 76)],
    }
    .gauges()
}

/// SFF-8636: byte of the upper page 00h that says which monitors there are.
const OPTIONS: u8 = 220;
const SENT: u8 = 1 << 2;

/// From bytes 0 to 57, and byte 220.
fn sff_8636(lower: &Memory, options: &Memory) -> Gauges {
    let (temperature, voltage) = (lower.word(22), lower.word(26));
    let [received, bias, sent] = [34, 42, 50].map(|at| lower.words(at, 4));
    // Only later revisions say whether temperature and voltage are measured; otherwise unmeasured ones read 0 or all ones.
    let measured = |raw: u16| !matches!(raw, 0 | u16::MAX);
    if !measured(temperature) && !measured(voltage) {
        return Gauges::new();
    }
    let measures_sent = options.byte(OPTIONS.into()) & SENT != 0;
    // An optical module has a laser, or gets light. An active copper cable may measure its temperature alone.
    let optical = measures_sent || bias.iter().chain(&received).any(|raw| *raw != 0);
    let lanes = |raw: &[u16], there: bool| if there { floats(raw) } else { Vec::new() };
    Readings {
        temperature: measured(temperature).then(|| celsius(temperature)),
        voltage: measured(voltage).then(|| f64::from(voltage) / 10_000.0),
        sent: lanes(&sent, measures_sent),
        received: lanes(&received, optical),
        bias: lanes(&bias, optical),
    }
    .gauges()
}

/// CMIS, bit of byte 2: the memory has no pages, as for a passive cable.
const FLAT: u8 = 1 << 7;
/// First of the two bytes of page 01h that say which monitors there are.
const MONITORS: u8 = 159;

/// Up to eight lanes; further lanes are ignored. From bytes 0 to 17, page 01h bytes 159 and 160, and page 11h bytes 154 to 201.
fn cmis(lower: &Memory, monitors: &Memory, lanes: &Memory) -> Gauges {
    let [of_module, of_lanes] = [159, 160].map(|at| monitors.byte(at));
    let of = |bit: u8, at: usize| if of_lanes >> bit & 1 == 1 { floats(&lanes.words(at, 8)) } else { Vec::new() };
    // 0, 1 and 2 mean steps of 2, 4 and 8 µA.
    let multiplier = f64::from(1u8 << (of_lanes >> 3 & 3));
    Readings {
        temperature: (of_module & 1 != 0).then(|| celsius(lower.word(14))),
        voltage: (of_module & 2 != 0).then(|| f64::from(lower.word(16)) / 10_000.0),
        sent: of(1, 154),
        received: of(2, 186),
        bias: of(0, 170).into_iter().map(|steps| steps * multiplier).collect(),
    }
    .gauges()
}

#[cfg(test)]
#[path = "tests/module.rs"]
mod tests;
