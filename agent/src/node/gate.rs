//! Where flows wait for each other. One that is out is not waited for.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use railgauge_wire::failure::{Failure, Stage};

use crate::bench::control::Control;

/// A gate that opens whenever all flows that are not out stand before it.
pub(super) struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

struct State {
    /// Flows that are not out.
    flows: usize,
    waiting: usize,
    times: u64,
}

impl Gate {
    pub(super) fn new(flows: usize) -> Self {
        Self { state: Mutex::new(State { flows, waiting: 0, times: 0 }), opened: Condvar::new() }
    }

    /// The pass of one flow. Dropped, the flow is out.
    pub(super) fn pass(&self) -> Pass<'_> {
        Pass { gate: self }
    }

    fn open_if_complete(&self, state: &mut State) {
        if state.waiting == state.flows {
            (state.waiting, state.times) = (0, state.times + 1);
            self.opened.notify_all();
        }
    }
}

pub(super) struct Pass<'g> {
    gate: &'g Gate,
}

impl Pass<'_> {
    /// Waits for all flows that are not out.
    pub(super) fn meet(&self, control: &Control) -> Result<(), Failure> {
        let mut state = self.gate.state.lock();
        let before = state.times;
        state.waiting += 1;
        self.gate.open_if_complete(&mut state);
        while state.times == before {
            let late = self.gate.opened.wait_until(&mut state, deadline(control)).timed_out();
            if late && state.times == before {
                state.waiting -= 1;
                return control.check(Stage::Measure);
            }
        }
        Ok(())
    }
}

/// A moment past the deadline, so that [`Control::check`] finds it passed.
fn deadline(control: &Control) -> Instant {
    control.deadline() + std::time::Duration::from_millis(1)
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.flows -= 1;
        self.gate.open_if_complete(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread, time::Duration};

    use super::*;

    fn control(limit: u64) -> Control {
        Control::new(Arc::default(), Arc::default(), Instant::now() + Duration::from_millis(limit))
    }

    #[test]
    fn all_wait_for_all_but_for_none_that_is_out() {
        let gate = Gate::new(3);
        thread::scope(|scope| {
            let pass = gate.pass();
            let early = scope.spawn(move || (pass.meet(&control(60_000)), pass.meet(&control(60_000))));
            let pass = gate.pass();
            let late = scope.spawn(move || {
                thread::sleep(Duration::from_millis(30));
                (pass.meet(&control(60_000)), pass.meet(&control(60_000)))
            });
            drop(gate.pass());
            assert_eq!(early.join().unwrap(), (Ok(()), Ok(())));
            assert_eq!(late.join().unwrap(), (Ok(()), Ok(())));
        });
    }

    #[test]
    fn who_waits_in_vain_is_told_so() {
        let gate = Gate::new(2);
        let pass = gate.pass();
        let failure = pass.meet(&control(20)).unwrap_err();
        assert_eq!(failure.kind, railgauge_wire::failure::Kind::Deadline);
    }
}
