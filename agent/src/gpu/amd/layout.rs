//! Offsets of values in AMD SMI's structures, by version.

use std::ffi::c_void;

use thiserror::Error;

/// Buffer for an answer: larger than the largest structure of the known versions, which has 6016 bytes (`amdsmi_violation_status_t` of
/// 26).
pub(super) struct Space(Box<[u64; 2048]>);

impl Default for Space {
    fn default() -> Self {
        Self(Box::new([0; 2048]))
    }
}

impl Space {
    pub(super) fn place(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0.get((at + i) / 8).map_or(0, |word| word.to_ne_bytes()[(at + i) % 8]))
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        u8::from_ne_bytes(self.bytes(at))
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.bytes(at))
    }

    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes(at))
    }

    pub(super) fn long(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(at))
    }

    /// `None` for an empty text or AMD SMI's marker of an unknown one.
    pub(super) fn text(&self, at: usize, length: usize) -> Option<String> {
        let bytes: Vec<u8> = (at..at + length).map(|at| self.byte(at)).take_while(|byte| *byte != 0).collect();
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty() && text != "N/A").then_some(text)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// `amdsmi_board_info_t::product_serial`: place and length.
    pub(super) product_serial: (usize, usize),
    /// `amdsmi_power_info_t`: `current_socket_power` and `average_socket_power`.
    power: [usize; 2],
    /// `amdsmi_violation_status_t`: the first of `active_prochot_thrm`, `…ppt_pwr`, `…socket_thrm`, `…vr_thrm`, `…hbm_thrm`.
    active: usize,
    /// `amdsmi_proc_info_t`: its size, and `pid`.
    program: (usize, usize),
}

/// An unknown version, by its first numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("AMD SMI {}.{}.{} is not used: known are 24.6, 24.7, 25 and 26 (ROCm 6.2 to 7)", .0[0], .0[1], .0[2])]
pub(crate) struct Unknown(pub [u32; 3]);

/// 24.6 and 24.7: strings of 32 and 64 bytes.
pub(super) static OLD: Layout = Layout { product_serial: (256, 32), power: [0, 4], active: 104, program: (224, 32) };
/// 25 and 26: strings of 256 bytes.
pub(super) static NEW: Layout = Layout { product_serial: (256, 256), power: [8, 12], active: 120, program: (704, 256) };

/// `amdsmi_asic_info_t::market_name`, `amdsmi_board_info_t::model_number`: both first, 256 bytes.
pub(super) const NAME: (usize, usize) = (0, 256);
/// `amdsmi_driver_info_t::driver_version`: first, 64 bytes or more.
pub(super) const DRIVER_VERSION: (usize, usize) = (0, 64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Violations {
    pub(super) power: bool,
    pub(super) heat: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pcie {
    pub(super) best: Option<(u32, u32)>,
    pub(super) now: Option<(u32, u32)>,
    pub(super) replays: Option<u64>,
}

impl Layout {
    /// The layout of a version, by the first numbers of `amdsmi_version_t`: year, major, minor and release, and from 26 on major, minor
    /// and release alone.
    pub(super) fn of(numbers: [u32; 4]) -> Result<&'static Self, Unknown> {
        match numbers {
            [24, 6 | 7, ..] => Ok(&OLD),
            [25 | 26, ..] => Ok(&NEW),
            [first, second, third, _] => Err(Unknown([first, second, third])),
        }
    }

    /// Current power of the socket, or its mean where the GPU has only that.
    pub(super) fn watts(&self, space: &Space) -> Option<f64> {
        let told = self.power.into_iter().map(|at| space.word(at)).find(|watts| *watts != 0 && !is_unknown(*watts));
        told.map(f64::from)
    }

    /// `None` where the GPU reports no kind.
    pub(super) fn violations(&self, space: &Space) -> Option<Violations> {
        let [processor, power, socket, regulator, memory] =
            [0, 1, 2, 3, 4].map(|kind| match space.byte(self.active + kind) {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            });
        let heat = [processor, socket, regulator, memory];
        heat.iter().chain([&power]).any(Option::is_some).then(|| Violations {
            power: power.unwrap_or(false),
            heat: heat.into_iter().flatten().any(|active| active),
        })
    }

    pub(super) fn programs(&self, count: u32) -> Vec<u64> {
        vec![0; (self.program.0 * count as usize).div_ceil(8)]
    }

    pub(super) fn pids(&self, list: &[u64], count: u32) -> Vec<u32> {
        let (size, pid) = self.program;
        let entries = list.chunks_exact(size / 8).take(count as usize);
        // Both are multiples of 8.
        entries
            .map(|entry| entry[pid / 8].to_ne_bytes())
            .map(|[a, b, c, d, ..]| u32::from_ne_bytes([a, b, c, d]))
            .collect()
    }
}

/// AMD SMI's marker of an unknown number: all bits of it, or of the driver's 16.
fn is_unknown(number: u32) -> bool {
    number == u32::MAX || number == u32::from(u16::MAX)
}

/// `amdsmi_clk_info_t`: `clk` and `max_clk`.
pub(super) fn clock(space: &Space) -> (Option<u32>, Option<u32>) {
    let told = |at| Some(space.word(at)).filter(|clock| *clock != 0 && !is_unknown(*clock));
    (told(0), told(8))
}

/// `amdsmi_power_cap_info_t::power_cap`, which is in µW.
pub(super) fn limit_watts(space: &Space) -> Option<f64> {
    Some(space.long(0)).filter(|cap| (1..u64::MAX).contains(cap)).map(|cap| cap as f64 / 1e6)
}

/// `amdsmi_pcie_info_t`: `pcie_static` with `max_pcie_width` and `max_pcie_speed`, and from 96 on `pcie_metric` with `pcie_width`,
/// `pcie_speed`, and `pcie_replay_count`.
pub(super) fn pcie(space: &Space) -> Pcie {
    let link = |at| {
        generation(space.word(at + 4)).zip(Some(u32::from(space.half(at))).filter(|width| (1..=32).contains(width)))
    };
    let replays = Some(space.long(112)).filter(|replays| *replays != u64::MAX);
    Pcie { best: link(0), now: link(96), replays }
}

/// The generation of a PCIe link by its rate in MT/s.
fn generation(rate: u32) -> Option<u32> {
    [2_500, 5_000, 8_000, 16_000, 32_000, 64_000].iter().position(|known| *known == rate).map(|at| at as u32 + 1)
}

/// `amdsmi_bdf_t`: 3 bits of the function, 5 of the device, 8 of the bus, and the domain; in sysfs' spelling.
pub(super) fn address(bdf: u64) -> String {
    format!("{:04x}:{:02x}:{:02x}.{:x}", bdf >> 16, bdf >> 8 & 0xff, bdf >> 3 & 0x1f, bdf & 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_whose_layouts_are_not_known_are_refused() {
        for (numbers, layout) in
            [([24, 6, 3, 0], &OLD), ([24, 7, 0, 0], &OLD), ([25, 5, 1, 0], &NEW), ([26, 1, 0, 0], &NEW)]
        {
            assert_eq!(Layout::of(numbers), Ok(layout), "{numbers:?}");
        }
        for numbers in [[23, 4, 0, 0], [24, 5, 2, 0], [24, 8, 0, 0], [27, 0, 0, 9]] {
            let [first, second, third, _] = numbers;
            assert_eq!(Layout::of(numbers), Err(Unknown([first, second, third])));
        }
        assert!(Unknown([24, 5, 2]).to_string().starts_with("AMD SMI 24.5.2 is not used: known are 24.6"));
    }

    #[test]
    fn an_address_is_spelt_as_sysfs_does() {
        assert_eq!(address(0xd1 << 8), "0000:d1:00.0");
        assert_eq!(address(0x1_0002 << 16 | 0x65 << 8 | 3 << 3 | 1), "10002:65:03.1");
    }

    #[test]
    fn what_amd_smi_does_not_know_is_not_taken_for_a_number() {
        let mut space = Space::default();
        assert_eq!((NEW.watts(&space), clock(&space), pcie(&space).now), (None, (None, None), None));
        space.0[1] = u64::from(u32::MAX) | 140 << 32;
        // The current power is unknown, the mean is not.
        assert_eq!((NEW.watts(&space), clock(&space)), (Some(140.0), (None, None)));
        space.0[15] = u64::MAX;
        assert_eq!(NEW.violations(&space), None);
        space.0[15] = 0xff_ff00_ff00;
        assert_eq!(NEW.violations(&space), Some(Violations { power: false, heat: false }));
        space.0[15] = 1 << 8 | 1 << 24;
        assert_eq!(NEW.violations(&space), Some(Violations { power: true, heat: true }));
    }
}
