//! dlopen, only to see whether and where a library is.

use std::{error::Error, fs, path::PathBuf};

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

/// Opens a library and says which file it is.
///
/// # Errors
/// The loader's words.
pub fn find(name: &str) -> Result<PathBuf, String> {
    // SAFETY: the names come from this program: vendors' libraries whose initialisers are made to run in any process.
    let library = unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL) }
        .map_err(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string))?;
    // Stays open: not every vendor's library survives being closed.
    std::mem::forget(library);
    let maps = fs::read_to_string("/proc/self/maps").map_err(|error| format!("found, but /proc/self/maps: {error}"))?;
    let path = maps.lines().filter_map(|line| line.find('/').map(|start| PathBuf::from(&line[start..])));
    // The name is often a link: `libcuda.so.1` is mapped as `libcuda.so.580.159.04`.
    let stem = name.find(".so").map_or(name, |at| &name[..at + 3]);
    let mine = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(stem));
    path.into_iter().find(mine).ok_or_else(|| "found, but not in /proc/self/maps".into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_library_is_found_and_a_missing_one_is_named() {
        let path = super::find("libc.so.6").unwrap();
        assert!(path.is_absolute() && path.exists(), "{path:?}");
        // Its file is called otherwise: libnss_files.so.2 may be, libm.so.6 is always there.
        assert!(super::find("libm.so.6").is_ok());
        let words = super::find("librailgauge-nowhere.so.1").unwrap_err();
        assert!(words.contains("librailgauge-nowhere.so.1"), "{words}");
    }
}
