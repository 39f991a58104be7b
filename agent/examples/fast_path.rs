//! Our own cost per message: the agent's loops, clock and statistics included, on a device that completes at once.
//! Run by `bench/fast-path`; prints one JSON object.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use railgauge_agent::parts::{
    self, ByCompletion, ByMemory, Control, How, Nothing, Recorder, SIGNAL_EVERY, Template, Unlimited, Verb, Waiter,
    Walk, clock, serve_first, stream,
};
use railgauge_wire::{Bytes, Failure, Nanoseconds, Stage, Window};

#[path = "doubles/stub.rs"]
mod stub;

use stub::Stub;

/// Counts allocations: a loop that does not allocate has the same number of them however long it runs.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller vouches.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Messages of one timed run: a few milliseconds, so that most runs are not interrupted on a busy machine.
const MESSAGES: u64 = 100_000;

const RUNS: usize = 201;

/// A loop: sends so many messages, answers how many nanoseconds it took.
type Loop<'a> = &'a dyn Fn(u64) -> Result<Nanoseconds, Failure>;

fn template(verb: Verb, walk: Walk, list: u32, signal_every: u32) -> Template {
    let (size, inline) = (64, false);
    Template { verb, size, local: 0, remote: 0, remote_key: 0, walk, inline, list, signal_every, tag: 0 }
}

fn waiter() -> Waiter {
    let never = || Arc::new(AtomicBool::new(false));
    let control = Control::new(never(), never(), Instant::now() + Duration::from_secs(600));
    Waiter::polling(&control, Stage::Measure)
}

/// The bandwidth loop at depth 128.
fn bandwidth(walk: Walk, list: u32, messages: u64) -> Result<Nanoseconds, Failure> {
    let stub = Stub::new(false);
    let mut flows = [stub.sends(template(Verb::Write, walk, list, 32))];
    let how = How { rule: Window::Iterations(messages), size: 64, depth: 128, only: None, pace: None };
    let measured = stream(&mut flows, &mut stub.poller(), &mut waiter(), how, &mut Unlimited, &mut Nothing)?;
    assert_eq!(measured.operations, messages);
    Ok(measured.elapsed)
}

/// The latency loop of RDMA WRITE, answered at once.
fn write_latency(messages: u64) -> Result<Nanoseconds, Failure> {
    let stub = Stub::new(true);
    let mut sends = stub.sends(template(Verb::Write, Walk::default(), 1, SIGNAL_EVERY));
    let (outgoing, incoming) = stub.beats();
    let mut poller = stub.poller();
    let mut side = ByMemory::new(&mut sends, &mut poller, outgoing, incoming);
    latency(messages, |recorder| {
        serve_first(&mut side, &mut waiter(), (Window::Iterations(messages), Bytes(64)), recorder)
            .map(|measured| measured.elapsed)
    })
}

/// The latency loop of RDMA READ.
fn read_latency(messages: u64) -> Result<Nanoseconds, Failure> {
    let stub = Stub::new(false);
    let mut sends = stub.sends(template(Verb::Read, Walk::default(), 1, 1));
    let mut poller = stub.poller();
    let mut side = ByCompletion { sends: &mut sends, poller: &mut poller };
    latency(messages, |recorder| {
        serve_first(&mut side, &mut waiter(), (Window::Iterations(messages), Bytes(64)), recorder)
            .map(|measured| measured.elapsed)
    })
}

fn latency(
    messages: u64,
    run: impl FnOnce(&mut Recorder) -> Result<Nanoseconds, Failure>,
) -> Result<Nanoseconds, Failure> {
    let mut recorder = Recorder::new();
    let elapsed = run(&mut recorder)?;
    assert_eq!(recorder.samples, messages, "every sample counts");
    Ok(elapsed)
}

/// Nanoseconds per message of every run, and what a longer run allocates more than a shorter one.
fn measured(run: Loop<'_>) -> Result<(Vec<f64>, i64), Failure> {
    let allocated = |messages| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        run(messages).map(|_| ALLOCATIONS.load(Ordering::Relaxed) - before)
    };
    // What is set up once per process is not the loop's.
    allocated(MESSAGES)?;
    let more = allocated(10 * MESSAGES)?.cast_signed() - allocated(MESSAGES)?.cast_signed();
    let runs = (0..RUNS).map(|_| run(MESSAGES).map(|elapsed| elapsed.as_f64() / MESSAGES as f64));
    Ok((runs.collect::<Result<_, _>>()?, more))
}

fn main() -> Result<(), Failure> {
    let cache = Walk { step: 64, span: 4096 };
    let loops: [(&str, f64, Loop<'_>); 6] = [
        ("bandwidth, lists of 16, walking a page", 20.0, &|n| bandwidth(cache, 16, n)),
        ("bandwidth, lists of 16, in place", 20.0, &|n| bandwidth(Walk::default(), 16, n)),
        ("bandwidth, one at a time, walking a page", 20.0, &|n| bandwidth(cache, 1, n)),
        ("bandwidth, one at a time, in place", 20.0, &|n| bandwidth(Walk::default(), 1, n)),
        ("latency of write, last byte polled", 40.0, &write_latency),
        ("latency of read", 40.0, &read_latency),
    ];
    let mut found = Vec::new();
    for (name, bar, run) in loops {
        let (runs, allocations) = measured(run)?;
        found.push(serde_json::json!({
            "loop": name, "bar_ns": bar, "ns_per_message": runs, "more_allocations_when_longer": allocations,
        }));
    }
    println!("{}", serde_json::json!({ "messages": MESSAGES, "timer_ns": timer(), "loops": found }));
    Ok(())
}

fn timer() -> Nanoseconds {
    clock::overhead()
}
