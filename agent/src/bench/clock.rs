//! The one clock all measurements use: CLOCK_MONOTONIC_RAW, which no time daemon slews, through the vDSO.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use railgauge_wire::failure::{Failure, Stage};

use crate::{bench::control::Control, system::time};

/// Nanoseconds on CLOCK_MONOTONIC_RAW.
#[inline]
pub fn now() -> u64 {
    time::read(time::RAW)
}

/// Nanoseconds since 1970 on CLOCK_REALTIME.
pub fn realtime() -> u64 {
    time::read(time::REALTIME)
}

/// An `Instant` on this clock, exact to what the two clocks drift apart until then (under 0.05 %).
pub fn at(instant: Instant) -> u64 {
    let ahead = instant.saturating_duration_since(Instant::now());
    now().saturating_add(u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX))
}

/// Time one reading takes, in nanoseconds: median over 101 runs of 100 readings, measured once per process.
pub fn overhead() -> u64 {
    static OVERHEAD: OnceLock<u64> = OnceLock::new();
    *OVERHEAD.get_or_init(|| {
        let mut runs: [u64; 101] = std::array::from_fn(|_| {
            let before = now();
            for _ in 0..99 {
                std::hint::black_box(now());
            }
            (now() - before).div_ceil(100)
        });
        runs.sort_unstable();
        runs[50]
    })
}

/// Waits for a planned start; at once if it has passed. Sleeps first and spins for the last 200 µs.
///
/// # Errors
/// Aborted or past the deadline.
pub fn wait_until(start: u64, control: &Control) -> Result<(), Failure> {
    const SPIN: u64 = 200_000;
    const NAP: u64 = 50_000_000;
    loop {
        control.check(Stage::Measure)?;
        match start.saturating_sub(now()) {
            0 => return Ok(()),
            left if left > SPIN => std::thread::sleep(Duration::from_nanos((left - SPIN).min(NAP))),
            _ => {
                while now() < start {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_forwards_at_the_right_speed() {
        let (raw, monotonic) = (now(), Instant::now());
        std::thread::sleep(Duration::from_millis(50));
        let (raw, monotonic) = ((now() - raw) as f64, monotonic.elapsed().as_nanos() as f64);
        assert!((raw / monotonic - 1.0).abs() < 0.05, "{raw} against {monotonic} ns");
        assert!((1..100_000).contains(&overhead()), "{} ns per reading", overhead());
    }

    #[test]
    fn an_instant_is_found_on_the_clock() {
        let ahead = at(Instant::now() + Duration::from_secs(5)) - now();
        assert!((4_900_000_000..=5_000_000_000).contains(&ahead), "{ahead}");
    }
}
