//! Which processors the calling thread, and every thread it starts, may run on (sched_getaffinity, sched_setaffinity).

use std::io;

/// Words of a mask: enough for 8192 processors, the most Linux is built for.
const WORDS: usize = 8192 / 64;

pub(crate) fn allowed() -> io::Result<Vec<u32>> {
    allowed_to(0)
}

/// 0 is the calling thread.
fn allowed_to(thread: libc::pid_t) -> io::Result<Vec<u32>> {
    let mut mask = [0u64; WORDS];
    // SAFETY: the pointer and the size describe `mask`, which outlives the call.
    let rc = unsafe { libc::sched_getaffinity(thread, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..)
        .zip(mask)
        .flat_map(|(i, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i * 64 + bit))
        .collect())
}

pub(crate) fn allow(processors: &[u32]) -> io::Result<()> {
    let mut mask = [0u64; WORDS];
    for processor in processors {
        if let Some(word) = mask.get_mut(*processor as usize / 64) {
            *word |= 1 << (processor % 64);
        }
    }
    // SAFETY: as above; 0 is the calling thread.
    let rc = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Moves the calling thread off the processor that its parent holds and that it inherited, to the processors of the process's main
/// thread. Does nothing if the process has no other processor, or if `held` is more than one: the kernel finds a free one among several.
pub(crate) fn leave(held: &[u32]) -> io::Result<()> {
    let [held] = held else { return Ok(()) };
    let main = i32::try_from(std::process::id()).map_err(io::Error::other)?;
    let others: Vec<u32> = allowed_to(main)?.into_iter().filter(|processor| processor != held).collect();
    if others.is_empty() { Ok(()) } else { allow(&others) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_leaves_the_processor_of_the_thread_that_started_it() {
        std::thread::spawn(|| {
            let all = allowed().unwrap();
            let (last, others) = all.split_last().unwrap();
            allow(&[*last]).unwrap();
            let helper = |held: Vec<u32>| std::thread::spawn(move || (leave(&held).unwrap(), allowed().unwrap()).1);
            let wanted = if others.is_empty() { &all } else { others };
            assert_eq!(helper(vec![*last]).join().unwrap(), wanted);
            assert_eq!(helper(all.clone()).join().unwrap(), if all.len() > 1 { vec![*last] } else { all });
        })
        .join()
        .unwrap();
    }

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
