//! Moments on a GPU's own clock.

use std::sync::Arc;

use railgauge_wire::{failure::Failure, unit::Nanoseconds};

use super::{device::Device, driver::Handle, stream::Stream};

/// A moment in a stream's order: when everything queued before it is done.
pub(crate) struct Event {
    device: Arc<Device>,
    handle: Handle,
}

// SAFETY: events may be used from any thread; the handle is only a number to this process.
unsafe impl Send for Event {}

impl Event {
    /// A new event on a device. It tells the time; nobody sleeps for it.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Self, Failure> {
        device.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes; no flag is set.
        let status = unsafe { (device.driver().event_create)(&raw mut handle, 0) };
        device.check(status, "making an event")?;
        Ok(Self { device: Arc::clone(device), handle })
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<(), Failure> {
        // SAFETY: event and stream live, and are of one context.
        self.device
            .check(unsafe { (self.device.driver().event_record)(self.handle, stream.handle()) }, "recording an event")
    }

    pub(crate) fn wait(&self) -> Result<(), Failure> {
        // SAFETY: the event lives.
        self.device.check(unsafe { (self.device.driver().event_synchronize)(self.handle) }, "waiting for the GPU")
    }

    /// The time from an earlier event to this one. Both have come.
    pub(crate) fn since(&self, earlier: &Self) -> Result<Nanoseconds, Failure> {
        let mut milliseconds = 0.0_f32;
        // SAFETY: `milliseconds` is valid for writes, and both events live.
        let status =
            unsafe { (self.device.driver().event_elapsed)(&raw mut milliseconds, earlier.handle, self.handle) };
        self.device.check(status, "reading the time between two events")?;
        Ok(Nanoseconds((f64::from(milliseconds) * 1e6).round() as u64))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: the event of `new`, destroyed once.
            unsafe { (self.device.driver().event_destroy)(self.handle) };
        }
    }
}
