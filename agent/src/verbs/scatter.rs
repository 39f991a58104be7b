//! mlx5 puts small messages into the completion and copies them from there to their place with the CPU, which does not reach
//! GPU memory. It asks the environment whether to, each time a queue pair or a completion queue is made (rdma-core
//! providers/mlx5/verbs.c, `use_scatter_to_cqe`); perftest sets the variable for the whole process. Here it is off while the
//! queues of GPU links are made, and as ever for those of host memory.

use std::sync::{
    Once,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use parking_lot::{Mutex, MutexGuard};

/// What mlx5 asks for.
const NAME: &str = "MLX5_SCATTER_TO_CQE";

/// The environment's own entry, once it is put there: libc keeps the pointer (putenv(3)), so that the value can be changed
/// without moving anything another thread may be reading.
static ENTRY: [AtomicU8; 22] = entry();

const VALUE: usize = NAME.len() + 1;

static IS_OURS: AtomicBool = AtomicBool::new(false);

/// Queues are made by one thread at a time: each with the value it wants.
static MAKING: Mutex<()> = Mutex::new(());

/// `MLX5_SCATTER_TO_CQE=1` and a final zero.
const fn entry() -> [AtomicU8; 22] {
    let mut entry = [const { AtomicU8::new(0) }; 22];
    let name = NAME.as_bytes();
    let mut at = 0;
    while at < name.len() {
        entry[at] = AtomicU8::new(name[at]);
        at += 1;
    }
    entry[name.len()] = AtomicU8::new(b'=');
    entry[name.len() + 1] = AtomicU8::new(b'1');
    entry
}

/// Puts the variable into the environment, with the value that means what its absence means. To be called before there are
/// threads. A value that somebody has set already is theirs.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os(NAME).is_none() {
            // SAFETY: the entry is a string that ends in a zero and lives for ever, and is never anything else; no other
            // thread reads the environment yet, as the caller vouches.
            let refused = unsafe { libc::putenv(ENTRY.as_ptr().cast_mut().cast()) };
            IS_OURS.store(refused == 0, Ordering::Release);
        }
    });
}

/// Whether queues can be made that leave messages to the device alone.
pub(crate) fn can_be_off() -> bool {
    IS_OURS.load(Ordering::Acquire) || std::env::var_os(NAME).is_some_and(|value| value == "0")
}

/// Held while queues are made.
pub(crate) struct Making(#[expect(dead_code, reason = "held, never looked at")] MutexGuard<'static, ()>);

/// Waits for other threads' queues to be made; from here on mlx5 scatters to completions unless `off`.
pub(crate) fn making(off: bool) -> Making {
    let held = Making(MAKING.lock());
    ENTRY[VALUE].store(if off { b'0' } else { b'1' }, Ordering::Release);
    held
}

impl Drop for Making {
    fn drop(&mut self) {
        ENTRY[VALUE].store(b'1', Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_is_off_while_queues_for_gpu_memory_are_made_and_on_for_others() {
        prepare();
        assert!(can_be_off());
        let value = || std::env::var(NAME).unwrap();
        let off = making(true);
        assert_eq!(value(), "0");
        drop(off);
        let on = making(false);
        assert_eq!(value(), "1");
        drop(on);
        assert_eq!(value(), "1");
    }
}
