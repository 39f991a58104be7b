//! Which of the libraries that are opened at run time the loader finds.

use std::collections::BTreeMap;

use crate::system::library;

/// Libraries that some measurement or check opens.
const NAMES: [&str; 5] = ["libibverbs.so.1", "librdmacm.so.1", "libcuda.so.1", "libnccl.so.2", "libnvidia-ml.so.1"];

/// Each library's file, whose name carries its version, or the loader's words.
pub fn probe() -> BTreeMap<String, String> {
    let found = NAMES.map(|name| {
        let path = library::find(name).map(|path| path.display().to_string());
        (name.to_owned(), path.unwrap_or_else(|words| words))
    });
    found.into()
}
