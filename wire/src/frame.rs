//! Framing: one magic line, then frames of a big-endian `u32` length and that many bytes of JSON.
//!
//! The magic line lets a reader skip whatever a login shell prints before the agent starts.

use std::io::{self, Read, Write};

use serde::{Serialize, de::DeserializeOwned};

use crate::unit::Bytes;

/// First bytes an agent writes, on a line of their own. The protocol version travels in `Hello`, not here.
pub const MAGIC: &[u8] = b"\x01railgauge-agent\n";

/// A longer length prefix means that the stream is not ours.
pub const MAX_FRAME: Bytes = Bytes::from_mib(64);

/// Length prefix and JSON.
///
/// # Errors
/// The message cannot be written as JSON, or is longer than [`MAX_FRAME`].
pub fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).ok().filter(|n| Bytes::from(*n) <= MAX_FRAME);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "message longer than a frame"))?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Length of the frame after a four-byte prefix.
///
/// # Errors
/// The length is over [`MAX_FRAME`].
pub fn length(prefix: [u8; 4]) -> io::Result<usize> {
    match Bytes::from(u32::from_be_bytes(prefix)) {
        n if n <= MAX_FRAME => Ok(n.as_usize()),
        n => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("frame of {n} bytes announced, at most {MAX_FRAME} are read"),
        )),
    }
}

/// Decodes the JSON of one frame, without its prefix.
///
/// # Errors
/// The bytes are not the JSON of a `T`.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(bytes)?)
}

/// Writes one message as a frame and flushes.
///
/// # Errors
/// Those of [`encode`] and of the writer.
pub fn write<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    to.write_all(&encode(message)?)?;
    to.flush()
}

/// Reads one message; `None` where the stream ended between two frames.
///
/// # Errors
/// As [`bytes`]; or they are not the message that was expected.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    bytes(from)?.map(|bytes| decode(&bytes)).transpose()
}

/// Reads one message as it came; `None` where the stream ended between two frames.
///
/// # Errors
/// The stream broke or ended inside a frame, or the frame is longer than any is.
pub fn bytes(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut prefix = [0; 4];
    let mut got = 0;
    while got < prefix.len() {
        match from.read(&mut prefix[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let mut bytes = vec![0; length(prefix)?];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_messages_follow_one_another() {
        let mut stream = Vec::new();
        write(&mut stream, &"first").unwrap();
        write(&mut stream, &"second").unwrap();
        let mut from = stream.as_slice();
        assert_eq!(read::<String>(&mut from).unwrap().as_deref(), Some("first"));
        assert_eq!(read::<String>(&mut from).unwrap().as_deref(), Some("second"));
        assert_eq!(read::<String>(&mut from).unwrap(), None);
    }

    #[test]
    fn a_foreign_stream_is_refused_by_its_length() {
        let error = read::<String>(&mut b"Last login: today".as_slice()).unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_without_panic(bytes: Vec<u8>) {
            let _ = read::<serde_json::Value>(&mut bytes.as_slice());
        }

        #[test]
        fn what_is_written_is_read(text: String) {
            let frame = encode(&text).unwrap();
            prop_assert_eq!(read::<String>(&mut frame.as_slice()).unwrap(), Some(text));
        }
    }
}
