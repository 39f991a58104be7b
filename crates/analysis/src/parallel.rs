//! Work on many items by several threads, with the results in the order of the items.
//!
//! Threads are created for each piece of work: they inherit the priority of the thread that renders a page during a
//! run, unlike those of a pool.

use std::{
    cell::Cell,
    num::NonZero,
    panic::resume_unwind,
    thread::{self, Builder},
};

use parking_lot::Mutex;

const PART: usize = 1024;
/// Parts of the work, whose results are appended to those before: the results of millions of items must not be in memory twice.
const PARTS: usize = 64;
/// Most threads: beyond, memory is the bottleneck.
const MOST: usize = 16;

pub fn map<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    parts(items, |part| part.iter().map(&of).collect())
}

/// As [`map`], for slow items, on at most this many threads.
pub fn map_few<T: Sync, R: Send>(items: &[T], most: usize, of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let mut made: Vec<(&T, Option<R>)> = items.iter().map(|item| (item, None)).collect();
    in_turn(&mut made, most, |(item, made)| *made = Some(of(item)));
    made.into_iter().filter_map(|(_, made)| made).collect()
}

pub(super) fn parts<T: Sync, R: Send>(items: &[T], of: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    let mut all = Vec::new();
    for items in items.chunks(PART * PARTS) {
        let mut parts: Vec<(&[T], Vec<R>)> = items.chunks(PART).map(|part| (part, Vec::new())).collect();
        in_turn(&mut parts, MOST, |(items, made)| *made = of(items));
        // A growing list is moved page by page, without a copy, and only uses the pages that it fills.
        parts.into_iter().for_each(|(_, made)| all.extend(made));
    }
    all
}

pub(super) fn each<T: Send>(items: &mut [T], change: impl Fn(&mut T) + Sync) {
    let mut parts: Vec<&mut [T]> = items.chunks_mut(PART).collect();
    in_turn(&mut parts, MOST, |part| part.iter_mut().for_each(&change));
}

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

pub fn alone<R>(work: impl FnOnce() -> R) -> R {
    let before = ALONE.replace(true);
    let made = work();
    ALONE.set(before);
    made
}

pub fn both<A: Send, B>(other: impl Fn() -> A + Copy + Send, own: impl FnOnce() -> B) -> (A, B) {
    if ALONE.get() {
        return (other(), own());
    }
    thread::scope(|scope| {
        let thread = Builder::new().name("analysis".into()).spawn_scoped(scope, other);
        let own = own();
        let other = thread.map_or_else(|_| other(), |other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (other, own)
    })
}

/// Each thread takes the next part until none is left. Works with fewer threads if some cannot be created.
fn in_turn<P: Send>(parts: &mut [P], most: usize, work: impl Fn(&mut P) + Sync) {
    let processors = if ALONE.get() { 1 } else { thread::available_parallelism().map_or(1, NonZero::get) };
    let threads = processors.min(most).min(parts.len());
    let rest = Mutex::new(parts.iter_mut());
    let work = || {
        loop {
            let Some(part) = rest.lock().next() else { return };
            work(part);
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> =
            (1..threads).map_while(|_| Builder::new().name("analysis".into()).spawn_scoped(scope, work).ok()).collect();
        work();
        for other in others {
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        for n in [0, 1, PART - 1, PART, 10 * PART + 7, PARTS * PART + 1] {
            let mut items: Vec<usize> = (0..n).collect();
            assert_eq!(map(&items, |item| item * 2), (0..n).map(|item| item * 2).collect::<Vec<_>>());
            assert_eq!(map_few(&items[..n.min(9)], 4, |item| item + 1), (1..=n.min(9)).collect::<Vec<_>>());
            each(&mut items, |item| *item += 1);
            assert_eq!(items, (1..=n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn both_are_made() {
        let mut own = 1;
        assert_eq!(both(|| 7, || own += 1), (7, ()));
        assert_eq!(own, 2);
    }

    #[test]
    fn a_thread_may_work_alone() {
        let here = thread::current().id();
        let threads = || map(&[(); 4 * PART], |()| thread::current().id());
        assert!(alone(threads).iter().all(|thread| *thread == here));
        assert_eq!(alone(|| both(|| thread::current().id(), || ())).0, here);
        assert_ne!(both(|| thread::current().id(), || ()).0, here);
    }

    #[test]
    #[should_panic(expected = "item 5000")]
    fn a_panic_is_that_of_the_caller() {
        map(&(0..10 * PART).collect::<Vec<_>>(), |item| assert!(*item != 5000, "item {item}"));
    }
}
