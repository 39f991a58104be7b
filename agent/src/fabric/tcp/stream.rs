//! Byte-wise sending and receiving that ends when the controller says so.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use super::shared::Shared;

/// One payload stream as a thread sees it.
pub(super) struct Stream<'a> {
    socket: &'a TcpStream,
    number: usize,
    shared: &'a Shared<'a>,
    /// Calls in vain since the flags were last looked at.
    idle: u32,
}

impl<'a> Stream<'a> {
    pub(super) fn new(socket: &'a TcpStream, number: usize, shared: &'a Shared<'a>) -> Self {
        Self { socket, number, shared, idle: 0 }
    }

    /// Sends all of `bytes`.
    #[inline]
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) => self.again(error)?,
            }
        }
        Ok(())
    }

    /// Receives what is there, at least one byte.
    #[inline]
    pub(super) fn receive(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.socket.read(into) {
                Ok(0) => return Err(self.broke(&io::Error::other("the peer closed it"))),
                Ok(n) => return Ok(n),
                Err(error) => self.again(error)?,
            }
        }
    }

    /// `Ok` if a call that failed shall be repeated.
    #[cold]
    fn again(&mut self, error: io::Error) -> Result<(), Failure> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut if error.raw_os_error() != Some(libc::ETIMEDOUT) => {
                self.idle = self.idle.wrapping_add(1);
                // A spinning loop looks at the flags now and then, a sleeping one whenever it wakes in vain.
                match !self.shared.spin || self.idle.is_multiple_of(1024) {
                    true => self.shared.control.check(Stage::Measure),
                    false => Ok(()),
                }
            }
            _ => Err(self.broke(&error)),
        }
    }

    fn broke(&self, error: &io::Error) -> Failure {
        let cause = format!("stream {} to {} broke: {error}", self.number, self.shared.peer);
        Failure::new(Stage::Measure, Kind::Fabric, cause).remedy(remedy::CHECK_PEER_AND_LINK)
    }
}

/// Makes all streams end at once, so that no thread stays in a call.
pub(super) fn cut(streams: &[TcpStream]) {
    for stream in streams {
        // Fails only if it is cut already.
        let _ = stream.shutdown(Shutdown::Both);
    }
}
