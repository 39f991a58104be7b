//! Shared by all measuring loops: the clock, the stop rule, the slices, the latency distribution, CPU time.
//!
//! # A bandwidth loop
//!
//! ```text
//! warm up, and wait until everything posted has completed
//! clock::wait_until(start_at, control)
//! let cpu = clock::cpu();
//! let mut window = Window::begin(timing.window, size, clock::now());   // then the first post
//! while window.running || in_flight > 0 {
//!     if window.running { post, at most window.quota() per queue pair in all }
//!     let n = poll();
//!     if n > 0            { window.completed(clock::now(), n) }         // once per batch of completions
//!     else, now and then  { window.completed(clock::now(), 0); control.halted(); deadline }
//! }
//! Measurement { cpu: clock::cpu() - cpu, ..window.finish(clock::now()) }
//! ```
//!
//! The window lasts from just before the first post to the last completion: everything posted in it is waited for and counted, so
//! operations and time match. A `Duration` window stops *posting* when its time is over. With an `Iterations` window [`Window::running`]
//! stays true; the loop ends when [`Window::quota`] operations per queue pair have been posted and none is in flight.
//!
//! Cost: [`Window::completed`] is an addition and a comparison except at 10 ms marks, so a batch costs one clock reading (about 20 ns).
//! Nothing allocates before a window is a minute long, and then only at a mark.
//!
//! # A latency loop
//!
//! ```text
//! let mut recorder = Recorder::new();
//! let mut window = Window::ready(timing.window, size);
//! let mut before = clock::now();
//! window.start(before);
//! while window.running && done < window.quota() {
//!     one operation, there and back
//!     let now = clock::now();
//!     recorder.record(now - before); window.completed(now, 1); before = now; done += 1;
//!     now and then: control.halted(), deadline
//! }
//! let mut measurement = window.finish(before);
//! measurement.latency = Some(recorder.finish(round_trips_per_sample));   // 2 for half round trips, 1 for whole ones
//! ```
//!
//! One clock reading per iteration, no sample dropped, nothing subtracted; the time one reading takes is in
//! `Latency::timer`.
//!
//! # Deadlines in loops
//!
//! `Control::check` reads another clock and is for slow paths. Hot loops compute `clock::at(control.deadline)` once and compare it with
//! their `now`.

pub mod clock;
pub(crate) mod control;
mod latency;
mod window;

pub use latency::Recorder;
pub(crate) use window::{Pacer, Slices, Window};
