//! clock_gettime, through the vDSO where the kernel has one.

use railgauge_wire::Nanoseconds;

pub(crate) const RAW: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;
/// Time since 1970.
pub(crate) const REALTIME: libc::clockid_t = libc::CLOCK_REALTIME;
pub(crate) const THREAD: libc::clockid_t = libc::CLOCK_THREAD_CPUTIME_ID;

#[inline]
pub(crate) fn read(clock: libc::clockid_t) -> Nanoseconds {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes. The call fails only for clocks that do not exist; these are part of Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Nanoseconds::from_secs(time.tv_sec.cast_unsigned()) + Nanoseconds(time.tv_nsec.cast_unsigned())
}
