//! Memories made by the standards' tables: what is not set is zero.

use super::*;

/// A module's memory: every part that is set, by address, page and offset.
#[derive(Default)]
struct Module {
    pages: BTreeMap<(u8, u8), [u8; 256]>,
    asked: Vec<Part>,
}

impl Module {
    fn set(mut self, page: (u8, u8), at: usize, bytes: &[u8]) -> Self {
        self.pages.entry(page).or_insert([0; 256])[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn words(self, page: (u8, u8), at: usize, words: &[u16]) -> Self {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        self.set(page, at, &bytes)
    }

    fn read(mut self) -> (Gauges, Vec<Part>) {
        let found = read(|part| {
            self.asked.push(part);
            // The kernel's rules (net/ethtool/eeprom.c, `eeprom_parse_request`).
            let (first, last) = (usize::from(part.offset), usize::from(part.offset) + usize::from(part.length));
            assert!(part.page == 0 || first >= 128, "{part:?}: other pages have no lower half");
            assert!(last <= 256 && (first >= 128 || last <= 128), "{part:?} crosses the halves");
            let page = self.pages.get(&(part.address, part.page)).ok_or(io::ErrorKind::InvalidInput)?;
            Ok(page[first..last].to_vec())
        });
        (found.unwrap(), self.asked)
    }
}

const LOWER: (u8, u8) = (MODULE, 0);
const OPTICS: (u8, u8) = (DIAGNOSTICS, 0);

#[track_caller]
fn tells(gauges: &Gauges, name: &str, wanted: f64) {
    let found = gauges.get(&format!("module/{name}"));
    assert!(found.is_some_and(|found| (found - wanted).abs() < 1e-3), "{name}: {found:?}, not {wanted}");
}

/// 36.5 °C, 3.2981 V, 6.986 mA, 0.4678 mW sent, 0.1 mW received.
fn sfp(kind: u8) -> Module {
    let readings = [0x2480, 32_981, 3_493, 4_678, 1_000];
    Module::default().set(LOWER, 0, &[0x03, 0x04]).set(LOWER, 92, &[kind]).words(OPTICS, 96, &readings)
}

#[test]
fn sfp_with_its_own_calibration() {
    // Implemented, internally calibrated, average power.
    let (gauges, _) = sfp(0x68).read();
    tells(&gauges, "temperature_c", 36.5);
    tells(&gauges, "voltage_v", 3.2981);
    tells(&gauges, "bias_ma_lane1", 6.986);
    tells(&gauges, "tx_power_dbm_lane1", -3.2994);
    tells(&gauges, "rx_power_dbm_lane1", -10.0);
    assert_eq!(gauges.len(), 5);
}

#[test]
fn sfp_that_is_calibrated_by_its_reader() {
    let constants = [0.0f32, 0.0, 0.0, 2.0, 500.0].iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<_>>();
    // Slopes of 1, 2, 1 and 1, offsets of 10, 0, −256 (one degree) and 19.
    let linear = [0x0100, 10, 0x0200, 0, 0x0100, 0xff00, 0x0100, 19];
    let (gauges, _) = sfp(0x58).set(OPTICS, 56, &constants).words(OPTICS, 76, &linear).read();
    tells(&gauges, "temperature_c", 35.5);
    tells(&gauges, "voltage_v", 3.3);
    tells(&gauges, "bias_ma_lane1", 7.006);
    tells(&gauges, "tx_power_dbm_lane1", 10.0 * 0.9356f64.log10());
    tells(&gauges, "rx_power_dbm_lane1", 10.0 * 0.25f64.log10());
}

#[test]
fn sfp_without_light_and_without_diagnostics() {
    let (gauges, _) = sfp(0x68).words(OPTICS, 104, &[0]).read();
    tells(&gauges, "rx_power_dbm_lane1", -40.0);
    let (gauges, asked) = sfp(0).read();
    assert!(gauges.is_empty() && asked.iter().all(|part| part.address == MODULE), "{gauges:?} {asked:?}");
}

/// 45 °C, 3.3 V; light on three of four lanes.
fn qsfp(identifier: u8) -> Module {
    Module::default()
        .set(LOWER, 0, &[identifier, 0x08])
        .words(LOWER, 22, &[45 << 8, 0, 33_000])
        .words(LOWER, 34, &[10_000, 5_000, 2_500, 0])
        .words(LOWER, 42, &[4_000, 4_000, 4_000, 4_000])
        .words(LOWER, 50, &[10_000, 10_000, 10_000, 1])
}

#[test]
fn qsfp_by_lane() {
    for identifier in [0x0d, 0x11] {
        let (gauges, _) = qsfp(identifier).set(LOWER, 220, &[0b1100]).read();
        tells(&gauges, "temperature_c", 45.0);
        tells(&gauges, "voltage_v", 3.3);
        for (lane, power) in [0.0, -3.0103, -6.0206, -40.0].into_iter().enumerate() {
            tells(&gauges, &format!("rx_power_dbm_lane{}", lane + 1), power);
            tells(&gauges, &format!("bias_ma_lane{}", lane + 1), 8.0);
        }
        tells(&gauges, "tx_power_dbm_lane1", 0.0);
        tells(&gauges, "tx_power_dbm_lane4", -40.0);
        assert_eq!(gauges.len(), 14);
    }
}

#[test]
fn qsfp_that_does_not_measure_what_it_sends() {
    let (gauges, _) = qsfp(0x11).read();
    assert!(!gauges.keys().any(|name| name.contains("tx_power")), "{gauges:?}");
    tells(&gauges, "rx_power_dbm_lane4", -40.0);
}

#[test]
fn cables_of_copper_tell_nothing() {
    for nothing in [0x0000, 0xffff] {
        let cable = Module::default().set(LOWER, 0, &[0x11, 0x08]).words(LOWER, 22, &[nothing, 0, nothing]);
        assert_eq!(cable.read().0, Gauges::new());
    }
    // OSFP with a flat memory: it has no page but the first.
    let (gauges, asked) = Module::default().set(LOWER, 0, &[0x19, 0x50, 0x80]).read();
    assert!(gauges.is_empty() && asked.iter().all(|part| part.page == 0), "{gauges:?} {asked:?}");
}

/// 50.5 °C, 3.25 V; lanes of 1 mW and 2,000 steps of bias.
fn osfp(of_module: u8, of_lanes: u8) -> Module {
    Module::default()
        .set(LOWER, 0, &[0x19, 0x50, 0])
        .words(LOWER, 14, &[0x3280, 32_500])
        .set((MODULE, 0x01), 159, &[of_module, of_lanes])
        .words((MODULE, 0x11), 154, &[10_000; 8])
        .words((MODULE, 0x11), 170, &[2_000; 8])
        .words((MODULE, 0x11), 186, &[5_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 0])
}

#[test]
fn cmis_with_eight_lanes() {
    let (gauges, _) = osfp(0b11, 0b111).read();
    tells(&gauges, "temperature_c", 50.5);
    tells(&gauges, "voltage_v", 3.25);
    for (name, wanted) in [
        ("tx_power_dbm_lane8", 0.0),
        ("rx_power_dbm_lane1", -3.0103),
        ("rx_power_dbm_lane8", -40.0),
        ("bias_ma_lane5", 4.0),
    ] {
        tells(&gauges, name, wanted);
    }
    assert_eq!(gauges.len(), 2 + 3 * 8);
    // Steps of 8 µA, and nothing else is measured.
    let (gauges, _) = osfp(0, 0b1_0001).read();
    tells(&gauges, "bias_ma_lane1", 16.0);
    assert_eq!(gauges.len(), 8);
}

#[test]
fn temperatures_below_zero() {
    let (gauges, _) = osfp(1, 0).words(LOWER, 14, &[0xfb80]).read();
    tells(&gauges, "temperature_c", -4.5);
}

#[test]
fn other_modules_tell_nothing_and_errors_are_passed_on() {
    assert_eq!(Module::default().set(LOWER, 0, &[0x06]).read().0, Gauges::new());
    let refused = |_| Err(io::Error::from_raw_os_error(libc::EPERM));
    assert_eq!(read(refused).unwrap_err().raw_os_error(), Some(libc::EPERM));
}
