//! How processes find each other: a file of shared memory that tells which process has a queue pair, and one socket per
//! process, both in the directory that the environment names.

use std::{
    fs::OpenOptions,
    io,
    os::{
        fd::AsRawFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use crate::{responder, settings::settings};

/// Queue pairs that can exist at once.
const PLACES: usize = 1 << 16;

/// Numbers below are those of the special queue pairs, and of nobody.
const FIRST: u32 = 0x100;

/// The shared file: the last process number, the last place given away, and the process that has each queue pair.
#[repr(C)]
struct Table {
    processes: AtomicU32,
    next: AtomicU32,
    owners: [AtomicU32; PLACES],
}

/// This process's part in it.
pub struct Fabric {
    table: &'static Table,
    /// This process's number, from 1.
    pub process: u32,
}

/// The fabric, joined at the first call; `None` where the directory does not allow it.
pub fn fabric() -> Option<&'static Fabric> {
    static FABRIC: OnceLock<Option<Fabric>> = OnceLock::new();
    FABRIC.get_or_init(|| join().map_err(|error| eprintln!("verbs_double: joining the fabric: {error}")).ok()).as_ref()
}

fn socket(process: u32) -> Option<PathBuf> {
    Some(settings()?.directory.join(format!("process-{process}.sock")))
}

fn join() -> io::Result<Fabric> {
    let directory = &settings().ok_or(io::ErrorKind::NotFound)?.directory;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(directory.join("fabric"))?;
    file.set_len(size_of::<Table>() as u64)?;
    let (length, access) = (size_of::<Table>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping of a file that is as long as the table.
    let at = unsafe { libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is never unmapped, is aligned to a page, and holds atomics, for which any bytes are a value.
    let table = unsafe { &*at.cast::<Table>() };
    let process = table.processes.fetch_add(1, Ordering::SeqCst) + 1;
    let listener = UnixListener::bind(socket(process).ok_or(io::ErrorKind::NotFound)?)?;
    thread::Builder::new().name("double-listen".into()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = thread::Builder::new().name("double-serve".into()).spawn(move || responder::serve(&stream));
        }
    })?;
    Ok(Fabric { table, process })
}

fn place(number: u32) -> Option<usize> {
    number.checked_sub(FIRST).map(|place| place as usize).filter(|place| *place < PLACES)
}

impl Fabric {
    /// A number for a new queue pair, which no other on this fabric has.
    pub fn number(&self) -> Option<u32> {
        for _ in 0..PLACES {
            let next = self.table.next.fetch_add(1, Ordering::SeqCst) % PLACES as u32;
            let free =
                self.table.owners[next as usize].compare_exchange(0, self.process, Ordering::SeqCst, Ordering::SeqCst);
            if free.is_ok() {
                return Some(FIRST + next);
            }
        }
        None
    }

    /// Gives a number back.
    pub fn free(&self, number: u32) {
        if let Some(place) = place(number) {
            self.table.owners[place].store(0, Ordering::SeqCst);
        }
    }

    /// A stream to the process that has queue pair `number`.
    ///
    /// # Errors
    /// Nobody has it, or its process is gone.
    pub fn connect(&self, number: u32) -> io::Result<UnixStream> {
        let owner = place(number).map_or(0, |place| self.table.owners[place].load(Ordering::SeqCst));
        if owner == 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        UnixStream::connect(socket(owner).ok_or(io::ErrorKind::NotFound)?)
    }
}
