//! Which processors the calling thread, and every thread it starts, may run on (sched_getaffinity, sched_setaffinity).

use std::io;

/// Words of a mask: enough for 8192 processors, the most Linux is built for.
const WORDS: usize = 8192 / 64;

/// The processors allowed now, rising.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn allowed() -> io::Result<Vec<u32>> {
    let mut mask = [0u64; WORDS];
    // SAFETY: the pointer and the size describe `mask`, which outlives the call; 0 is the calling thread.
    let rc = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..)
        .zip(mask)
        .flat_map(|(i, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i * 64 + bit))
        .collect())
}

/// Allows only these processors.
///
/// # Errors
/// None of them is online or allowed to this process.
pub(crate) fn allow(processors: &[u32]) -> io::Result<()> {
    let mut mask = [0u64; WORDS];
    for processor in processors {
        if let Some(word) = mask.get_mut(*processor as usize / 64) {
            *word |= 1 << (processor % 64);
        }
    }
    // SAFETY: as above.
    let rc = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_held_on_the_processor_it_is_given() {
        std::thread::spawn(|| {
            let all = allowed().unwrap();
            let last = *all.last().unwrap();
            allow(&[last]).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
            assert!(allow(&[8191]).is_err() && allow(&[1 << 20]).is_err());
        })
        .join()
        .unwrap();
    }
}
