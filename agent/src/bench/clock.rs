//! The one clock all measurements use: CLOCK_MONOTONIC_RAW, which no time daemon slews, through the vDSO.

use std::{sync::OnceLock, time::Instant};

use railgauge_wire::{Failure, Nanoseconds, Stage};

use super::control::Control;
use crate::system::time;

#[inline]
pub fn now() -> Nanoseconds {
    time::read(time::RAW)
}

/// Time since 1970 on CLOCK_REALTIME.
pub fn realtime() -> Nanoseconds {
    time::read(time::REALTIME)
}

/// An `Instant` on this clock, exact to what the two clocks drift apart until then (under 0.05 %).
pub fn at(instant: Instant) -> Nanoseconds {
    let ahead = instant.saturating_duration_since(Instant::now());
    now().saturating_add(ahead.into())
}

/// Time one reading takes: median over 101 runs of 100 readings, measured once per process.
pub fn overhead() -> Nanoseconds {
    static OVERHEAD: OnceLock<Nanoseconds> = OnceLock::new();
    *OVERHEAD.get_or_init(|| {
        let mut runs: [Nanoseconds; 101] = std::array::from_fn(|_| {
            let before = now();
            for _ in 0..99 {
                std::hint::black_box(now());
            }
            Nanoseconds((now() - before).0.div_ceil(100))
        });
        runs.sort_unstable();
        runs[50]
    })
}

/// Waits for a planned start; at once if it has passed. Sleeps first and spins for the last 200 µs.
pub fn wait_until(start: Nanoseconds, control: &Control) -> Result<(), Failure> {
    const SPIN: Nanoseconds = Nanoseconds(200_000);
    const NAP: Nanoseconds = Nanoseconds::from_millis(50);
    loop {
        control.check(Stage::Measure)?;
        match start.saturating_sub(now()) {
            Nanoseconds::ZERO => return Ok(()),
            left if left > SPIN => std::thread::sleep((left - SPIN).min(NAP).into()),
            _ => {
                while now() < start {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

/// CPU time the calling thread has used so far, user and system.
pub(crate) fn cpu() -> Nanoseconds {
    time::read(time::THREAD)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_clock_runs_forwards_at_the_right_speed() {
        // Each reading lies between two of the other clock, however long the thread waits for a processor.
        let read = || (Instant::now(), now(), Instant::now());
        let (first, raw, second) = read();
        std::thread::sleep(Duration::from_millis(50));
        let (third, end, fourth) = read();
        let (least, raw, most) = (third - second, Duration::from(end - raw), fourth - first);
        assert!(least.mul_f64(0.95) < raw && raw < most.mul_f64(1.05), "{raw:?}, between {least:?} and {most:?}");
        assert!((1..100_000).contains(&overhead().0), "{} ns per reading", overhead());
    }

    #[test]
    fn an_instant_is_found_on_the_clock() {
        let (before, ahead) = (now(), Nanoseconds::from_secs(5));
        let found = at(Instant::now() + Duration::from(ahead));
        // Some for what the two clocks drift apart.
        assert!(
            found + Nanoseconds::from_millis(100) > before + ahead && found <= now() + ahead,
            "{found}, from {before}"
        );
    }

    const FIVE_MS: Nanoseconds = Nanoseconds::from_millis(5);

    #[test]
    fn sleeping_costs_nothing_and_spinning_does() {
        let before = cpu();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let asleep = cpu() - before;
        while cpu() - before - asleep < FIVE_MS {}
        assert!(asleep < FIVE_MS, "{asleep} ns asleep");
    }
}
