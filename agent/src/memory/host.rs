//! Host memory: page-aligned, present before it is used, on huge pages if asked for.

use std::{hint::black_box, io, mem::ManuallyDrop, ptr::NonNull};

use railgauge_wire::{Failure, Kind, Stage, remedy};

use super::place;
use crate::system::{log, tree::Tree};

/// Size of a huge page in bytes: the default one of x86-64 and of arm64 with 4 KiB pages.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Size of the smallest pages of any host here.
const SMALL_PAGE: usize = 4096;

/// Miri knows neither this flag nor files of the kernel.
const PRESENT: i32 = if cfg!(miri) { 0 } else { libc::MAP_POPULATE };

/// A private anonymous mapping, page-aligned, that never moves.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
    mapped: usize,
}

// SAFETY: the mapping belongs to this value alone, and bytes have no thread affinity.
unsafe impl Send for Buffer {}
// SAFETY: safe code only reads the bytes through a shared reference.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Touches every page from the calling thread, so that zeroed pages are on its NUMA node.
    pub fn new(length: u64, huge: bool) -> Result<Self, Failure> {
        let page = if huge { HUGE_PAGE } else { SMALL_PAGE };
        let flags = PRESENT | if huge { libc::MAP_HUGETLB } else { 0 };
        Self::map(length, page, 0, flags)
    }

    /// Touches every page from the calling thread, on transparent huge pages as far as available.
    pub fn on_large_pages(length: u64) -> Result<Self, Failure> {
        // One page more, so that a huge one can start in it. The rest is returned below, and with the buffer.
        let whole = ManuallyDrop::new(Self::map(length, HUGE_PAGE, HUGE_PAGE, 0)?);
        let (base, length, mapped) = (whole.start, whole.length, whole.mapped);
        let ahead = base.as_ptr().align_offset(HUGE_PAGE);
        // SAFETY: `ahead` is less than a huge page, and the mapping has one more than `mapped`, so both pointers stay in the mapping.
        let (start, end) = unsafe { (base.add(ahead), base.add(ahead + mapped)) };
        for (from, bytes) in [(base, ahead), (end, HUGE_PAGE - ahead)].into_iter().filter(|(_, bytes)| *bytes > 0) {
            // SAFETY: what lies before and behind belongs to the mapping of above, in whole pages, and nothing points to it.
            unmapped(unsafe { libc::munmap(from.as_ptr().cast(), bytes) });
        }
        // A kernel without huge pages refuses, and gives small ones.
        // SAFETY: advice on a mapping of our own changes nothing in it.
        unsafe { libc::madvise(start.as_ptr().cast(), mapped, libc::MADV_HUGEPAGE) };
        let mut buffer = Self { start, length, mapped };
        buffer.bytes_mut().iter_mut().step_by(SMALL_PAGE).for_each(|byte| *black_box(byte) = 0);
        Ok(buffer)
    }

    /// Maps `length` bytes in whole pages, and `more` bytes after them that do not count.
    fn map(length: u64, page: usize, more: usize, flags: i32) -> Result<Self, Failure> {
        let refused = |cause: String| Failure::new(Stage::Open, Kind::Configuration, cause);
        let available = if cfg!(miri) { None } else { place::bytes(&Tree::host()) };
        if let Some(available) = available.filter(|available| length > *available) {
            let cause = format!("a buffer of {length} bytes was asked for, {available} bytes of memory are available");
            return Err(refused(cause).remedy(remedy::SMALLER_BUFFERS));
        }
        // A length that does not fit an address cannot be available either; mmap then says so.
        let length = usize::try_from(length).unwrap_or(usize::MAX / 2);
        let mapped = length.max(1).next_multiple_of(page);
        let (all, access) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped + more, access, all, -1, 0) };
        let start = (start != libc::MAP_FAILED).then(|| NonNull::new(start.cast::<u8>())).flatten();
        let Some(start) = start else {
            let cause = format!("a buffer of {length} bytes could not be mapped: {}", io::Error::last_os_error());
            let remedy = match flags & libc::MAP_HUGETLB {
                0 => remedy::SMALLER_BUFFERS.into(),
                _ => remedy::RESERVE_HUGE_PAGES.with([("pages", (mapped / page).to_string())]),
            };
            return Err(refused(cause).remedy(remedy));
        };
        Ok(Self { start, length, mapped })
    }

    /// `None` where the kernel does not report it.
    pub fn on_huge(&self, tree: &Tree) -> Option<u64> {
        let maps = tree.text("proc/self/smaps")?;
        let mut lines = maps.lines();
        lines.find(|line| holds(line, self.start.as_ptr() as usize))?;
        let told = lines.find_map(|line| line.strip_prefix("AnonHugePages:"))?;
        Some(1024 * told.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?)
    }

    /// Whoever gives it to a device lends no bytes meanwhile.
    pub fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `length` bytes from `start` are mapped, initialised by the kernel, and live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no reference to it outlives `self`.
        unmapped(unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) });
    }
}

fn unmapped(status: i32) {
    if status != 0 {
        log!("returning memory: {}", io::Error::last_os_error());
    }
}

/// Whether a line of `/proc/PID/smaps` starts the mapping with this address (proc_pid_maps(5)).
fn holds(line: &str, address: usize) -> bool {
    let range = line.split(' ').next().and_then(|word| word.split_once('-'));
    let number = |digits: &str| usize::from_str_radix(digits, 16).ok();
    range.and_then(|(from, to)| Some(number(from)? <= address && address < number(to)?)).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_writable_to_its_last_byte() {
        let mut buffer = Buffer::new(5_000, false).unwrap();
        assert_eq!((buffer.address() as usize % 4096, buffer.len()), (0, 5_000));
        buffer.bytes_mut().fill(7);
        assert!(buffer.bytes().iter().all(|byte| *byte == 7));
    }

    #[test]
    fn a_buffer_on_large_pages_is_aligned_present_and_known_to_the_kernel() {
        let mut buffer = Buffer::on_large_pages(5 << 20).unwrap();
        assert_eq!((buffer.address() as usize % HUGE_PAGE, buffer.len()), (0, 5 << 20));
        assert!(buffer.bytes().iter().all(|byte| *byte == 0));
        buffer.bytes_mut().fill(7);
        // Where the kernel gives none, that is the answer.
        let huge = buffer.on_huge(&Tree::host()).unwrap();
        assert!(huge <= 6 << 20 && huge.is_multiple_of(HUGE_PAGE as u64), "{huge}");
    }

    #[test]
    fn a_mapping_is_found_by_an_address_in_it() {
        let line = "7f0000200000-7f0000400000 rw-p 00000000 00:00 0 ";
        assert!(holds(line, 0x7f00_0020_0000) && holds(line, 0x7f00_003f_ffff) && !holds(line, 0x7f00_0040_0000));
        assert!(!holds("AnonHugePages:      2048 kB", 0) && !holds("", 0));
    }

    #[test]
    fn more_than_there_is_gives_an_error_before_the_kernel_runs_out() {
        let failure = Buffer::new(1 << 60, false).unwrap_err();
        assert!(failure.cause.contains("available"), "{failure}");
    }
}
