//! Threads of links and ranks, by number. The reader only sets flags and passes requests on; the threads work on them in order and write
//! the replies themselves.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_wire::{Answer, Failure, Kind, LinkId, Stage};

use super::pipes::Outlet;
use crate::{
    bench::control::Control,
    system::wait::Doorbell,
    worker::{self, Worker, caught},
};

const FAREWELL: Duration = Duration::from_millis(500);

pub(super) struct Register<T> {
    what: &'static str,
    entries: Entries<T>,
    outlet: Outlet,
}

type Entries<T> = Arc<Mutex<HashMap<LinkId, Entry<T>>>>;

struct Entry<T> {
    worker: Worker<T>,
    /// Stop flag of the last request: each has its own, so that a `Stop` is neither lost to a step that has not begun yet, nor seen by
    /// the next one.
    stop: Arc<AtomicBool>,
    abort: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
}

impl<T> Entry<T> {
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.bell.ring();
    }
}

/// A request, answered once.
pub(super) struct Request {
    id: u64,
    outlet: Outlet,
    answered: AtomicBool,
    stop: Arc<AtomicBool>,
    abort: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
}

impl Request {
    pub(super) fn reply(&self, outcome: Result<Answer, Failure>) {
        if !self.answered.swap(true, Ordering::Relaxed) {
            self.outlet.reply(self.id, outcome);
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Ends after `limit`, when the controller stops the request, or when it closes the link.
    pub(super) fn control(&self, limit: Duration) -> Control {
        self.control_by(self.stop.clone(), limit)
    }

    pub(super) fn control_by(&self, stop: Arc<AtomicBool>, limit: Duration) -> Control {
        // A century replaces a limit that would overflow.
        let century = Duration::from_secs(100 * 365 * 86_400);
        Control::new(stop, self.abort.clone(), Instant::now() + limit.min(century)).ringing(self.bell.clone())
    }
}

impl<T: 'static> Register<T> {
    pub(super) fn new(what: &'static str, outlet: Outlet) -> Self {
        Self { what, entries: Arc::default(), outlet }
    }

    pub(super) fn open(
        &self,
        id: u64,
        number: LinkId,
        open: impl FnOnce(&Request) -> Result<(T, Answer), Failure> + Send + 'static,
    ) {
        let start = || -> Result<(), Failure> {
            let name = format!("{} {number}", self.what);
            let refused = |cause: String| Failure::new(Stage::Open, Kind::Internal, cause);
            let mut entries = self.entries.lock();
            if entries.contains_key(&number) {
                return Err(refused(format!("{name} is open already")));
            }
            let bell = Doorbell::new().map_err(|error| refused(format!("no descriptor for {name}: {error}")))?;
            let bell = Arc::new(bell);
            let (stop, abort) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
            let request = self.request(id, &stop, &abort, &bell);
            let register = self.entries.clone();
            let opening = move || match caught(Stage::Open, || open(&request)).flatten() {
                Ok((owned, answer)) => {
                    request.reply(Ok(answer));
                    Ok(owned)
                }
                Err(failure) => {
                    register.lock().remove(&number);
                    request.reply(Err(failure.clone()));
                    Err(failure)
                }
            };
            let (worker, _) = Worker::start(&name.replace(' ', "-"), opening)
                .map_err(|error| refused(format!("no thread for {name}: {error}")))?;
            // The thread cannot find its entry before the lock is free.
            entries.insert(number, Entry { worker, stop, abort, bell });
            Ok(())
        };
        if let Err(failure) = start() {
            self.outlet.reply(id, Err(failure));
        }
    }

    fn request(&self, id: u64, stop: &Arc<AtomicBool>, abort: &Arc<AtomicBool>, bell: &Arc<Doorbell>) -> Request {
        let (outlet, answered) = (self.outlet.clone(), AtomicBool::new(false));
        Request { id, outlet, answered, stop: stop.clone(), abort: abort.clone(), bell: bell.clone() }
    }

    pub(super) fn ask(
        &self,
        id: u64,
        number: LinkId,
        stage: Stage,
        work: impl FnOnce(&mut T, &Arc<Request>) -> Result<Answer, Failure> + Send + 'static,
    ) {
        self.pass(id, number, |entry| {
            entry.stop = Arc::default();
            let request = Arc::new(self.request(id, &entry.stop, &entry.abort, &entry.bell));
            entry.worker.pass(move |owned| {
                let (outcome, _broken) = worker::with(owned, stage, |owned| work(owned, &request));
                request.reply(outcome);
            })
        });
    }

    pub(super) fn stop(
        &self,
        id: u64,
        number: LinkId,
        outcome: impl FnOnce(&mut T) -> Result<Answer, Failure> + Send + 'static,
    ) {
        let outlet = self.outlet.clone();
        self.pass(id, number, |entry| {
            entry.stop();
            entry.worker.pass(move |owned| outlet.reply(id, worker::with(owned, Stage::Converse, outcome).0))
        });
    }

    /// An entry in the register means that the thread will handle the request: it removes its entry, under this lock, before its last
    /// check.
    fn pass(&self, id: u64, number: LinkId, pass: impl FnOnce(&mut Entry<T>) -> bool) {
        let passed = self.entries.lock().get_mut(&number).is_some_and(pass);
        if !passed {
            self.unknown(id, number);
        }
    }

    pub(super) fn unknown(&self, id: u64, number: LinkId) {
        let cause = format!("{} {number} is not open", self.what);
        self.outlet.reply(id, Err(Failure::new(Stage::Converse, Kind::Internal, cause)));
    }

    /// `false` for an unknown number.
    pub(super) fn close(&self, id: u64, number: LinkId) -> bool {
        let outlet = self.outlet.clone();
        self.closing(number, move || outlet.reply(id, Ok(Answer::Done)))
    }

    fn closing(&self, number: LinkId, closed: impl FnOnce() + Send + 'static) -> bool {
        let (what, register) = (self.what, self.entries.clone());
        self.entries.lock().get(&number).is_some_and(|entry| {
            entry.abort.store(true, Ordering::Relaxed);
            entry.stop();
            entry.worker.pass(move |owned| {
                let gone = Failure::new(Stage::Converse, Kind::Aborted, format!("the {what} was closed"));
                let open = std::mem::replace(owned, Err(gone));
                if let Err(failure) = caught(Stage::Converse, || drop(open)) {
                    crate::system::log!("closing {what} {number}: {failure}");
                }
                // Nothing more is sent to this thread.
                register.lock().remove(&number);
                closed();
            })
        })
    }

    pub(super) fn close_all(&self) {
        let numbers: Vec<LinkId> = self.entries.lock().keys().copied().collect();
        for number in numbers {
            self.closing(number, || ());
        }
        let give_up = Instant::now() + FAREWELL;
        while !self.entries.lock().is_empty() && Instant::now() < give_up {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs::File, io, os::fd::OwnedFd, sync::atomic::AtomicU64};

    use railgauge_wire::{FromAgent, frame};

    use super::*;

    #[test]
    fn every_request_has_one_reply_whoever_opens_asks_stops_and_closes_at_the_same_time() {
        let (mut reading, writing) = io::pipe().unwrap();
        let register = Register::<u64>::new("link", Outlet::to(File::from(OwnedFd::from(writing))).unwrap());
        let reader = thread::spawn(move || {
            let mut replies = BTreeMap::<u64, u32>::new();
            while let Ok(Some(FromAgent::Reply { id, .. })) = frame::read(&mut reading) {
                *replies.entry(id).or_default() += 1;
            }
            replies
        });
        let next = AtomicU64::new(0);
        let some = |turn: u64| {
            let (id, number) = (next.fetch_add(1, Ordering::Relaxed), turn % 3);
            let refused = move || Failure::new(Stage::Open, Kind::Fabric, "refused");
            match turn % 5 {
                0 | 1 => register.open(id, number, move |_| {
                    if turn.is_multiple_of(10) { Err(refused()) } else { Ok((turn, Answer::Done)) }
                }),
                2 => register.ask(id, number, Stage::Measure, |_, request| {
                    // Only the first reply is sent.
                    request.reply(Ok(Answer::Done));
                    Ok(Answer::Done)
                }),
                3 => register.stop(id, number, |_| Ok(Answer::Done)),
                _ if register.close(id, number) => {}
                _ => register.unknown(id, number),
            }
        };
        thread::scope(|scope| {
            for first in 0..4 {
                let some = &some;
                scope.spawn(move || (0..500).for_each(|turn| some(first * 7 + turn)));
            }
        });
        register.close_all();
        drop(register);
        let replies = reader.join().unwrap();
        assert_eq!(replies.len(), 2_000);
        assert!(replies.values().all(|count| *count == 1));
    }
}
