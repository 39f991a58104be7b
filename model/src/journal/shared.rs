//! What many values have one copy of, as serde reads and writes it: as if each had its own.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes what is shared.
///
/// # Errors
/// Those of the serialiser.
pub(super) fn write<T: Serialize + ?Sized, S: Serializer>(of: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    T::serialize(of, serializer)
}

/// Reads a value of its own.
///
/// # Errors
/// It is none.
pub(super) fn read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<T>, D::Error> {
    T::deserialize(deserializer).map(Arc::new)
}

/// Reads a text of its own.
///
/// # Errors
/// It is none.
pub(super) fn read_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Arc::from)
}
