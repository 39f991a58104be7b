//! Tests whether the last byte of a written message lands last: each of the first messages of a polled latency pass has one value
//! throughout, and everything must be there once the last byte is. perftest assumes it. Devices guarantee it for few queue pairs, and
//! otherwise the time is too short: the message had not arrived.

use railgauge_wire::{Failure, Kind, Stage, remedy};

use crate::verbs::Span;

/// Most bytes to check, unless the fewest messages have more.
const BYTES: u64 = 16 << 20;

/// Fewest and most messages to check.
const MESSAGES: (u64, u64) = (2, 256);

/// Both ends check as many messages.
pub(crate) struct OrderCheck {
    outgoing: Span,
    incoming: Span,
    pub messages: u64,
}

impl OrderCheck {
    pub(crate) fn new(outgoing: Span, incoming: Span) -> Self {
        let messages = (BYTES / incoming.len().max(1)).clamp(MESSAGES.0, MESSAGES.1);
        Self { outgoing, incoming, messages }
    }

    /// Writes message `number` (from 0), if checked, with all bytes `value`.
    pub(super) fn write(&self, number: u64, value: u8) {
        if number < self.messages {
            self.outgoing.fill(value);
        }
    }

    /// Checks message `number`, whose last byte is here.
    pub(super) fn look(&self, number: u64, value: u8) -> Result<(), Failure> {
        if number >= self.messages {
            return Ok(());
        }
        self.incoming.other_than(value).map_or(Ok(()), |at| Err(late(at, self.incoming.len())))
    }
}

#[cold]
pub(super) fn late(at: u64, size: u64) -> Failure {
    let cause = format!(
        "the last byte of a message of {size} bytes was here before byte {at}: the device or the fabric does not keep the \
         order, and a latency taken by polling the last byte would be too short"
    );
    Failure::new(Stage::Measure, Kind::Fabric, cause).remedy(remedy::WRITE_IMMEDIATE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::flag::tests::memory;

    #[test]
    fn a_message_whose_last_byte_came_first_is_no_sample() {
        for (size, late) in [(2, 0), (64, 62), (4096, 0), (4099, 2000), (4099, 4097)] {
            let (bytes, incoming) = memory(size);
            let check = OrderCheck::new(memory(size).1, incoming);
            bytes.fill(7);
            assert!(check.look(0, 7).is_ok());
            bytes.store(late, 6);
            let failure = check.look(0, 7).unwrap_err();
            assert_eq!(failure.kind, Kind::Fabric);
            assert!(failure.cause.contains(&format!("byte {late}:")), "{failure}");
            assert!(
                check.look(check.messages, 7).is_ok(),
                "later messages carry their number in the first and the last byte only"
            );
        }
    }

    #[test]
    fn all_bytes_of_the_first_messages_are_new() {
        let ((bytes, outgoing), size) = (memory(100), 100);
        let check = OrderCheck::new(outgoing, memory(size).1);
        check.write(0, 1);
        check.write(1, 2);
        assert!((0..size).all(|at| bytes.load(at) == 2));
        check.write(check.messages, 3);
        assert!((0..size).all(|at| bytes.load(at) == 2));
    }

    #[test]
    fn long_messages_are_checked_too_and_short_ones_not_for_ever() {
        let messages = |size| OrderCheck::new(memory(size).1, memory(size).1).messages;
        assert_eq!(messages(1), 256);
        assert_eq!(messages(1 << 20), 16);
        assert_eq!(messages(32 << 20), 2);
    }
}
