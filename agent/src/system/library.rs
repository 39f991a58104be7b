//! dlopen: whether and where a library is, and what may be wrong with one.

use std::{
    error::Error,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use thiserror::Error;

/// A library that the loader does not open. Its text is the loader's own.
#[derive(Debug)]
pub(crate) struct NotOpened(pub libloading::Error);

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The outer error only says that dlopen failed.
        match self.0.source() {
            Some(words) => fmt::Display::fmt(words, f),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl Error for NotOpened {}

/// Several names of a library of which the loader opens none, in the loader's own text of each.
#[derive(Debug)]
pub(crate) struct NoneOpened(Vec<NotOpened>);

impl fmt::Display for NoneOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, why) in self.0.iter().enumerate() {
            let between = if at > 0 { "; " } else { "" };
            write!(f, "{between}{why}")?;
        }
        Ok(())
    }
}

impl Error for NoneOpened {}

/// A function that an open library has not got, by the name of its symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no function {0}")]
pub(crate) struct NoFunction(pub &'static str);

/// Why the file of a library is not known.
#[derive(Debug, Error)]
pub(crate) enum NotFound {
    /// The loader does not open it.
    #[error(transparent)]
    NotOpened(NotOpened),
    /// It is open, and the kernel does not show the files of this process.
    #[error("found, but /proc/self/maps: {0}")]
    Maps(io::Error),
    /// It is open, and no file of that name is mapped.
    #[error("found, but not in /proc/self/maps")]
    NotMapped,
}

/// The first of several names that the loader opens, with the name.
///
/// # Errors
/// It opens none.
pub(crate) fn first<'n>(names: &[&'n str]) -> Result<(Library, &'n str), NoneOpened> {
    let mut why = Vec::new();
    for name in names {
        // SAFETY: the names come from this program, or from the plan's author: vendors' libraries whose initialisers are made to run in any
        // process.
        match unsafe { Library::open(Some(*name), RTLD_LAZY | RTLD_LOCAL) } {
            Ok(library) => return Ok((library, name)),
            Err(error) => why.push(NotOpened(error)),
        }
    }
    Err(NoneOpened(why))
}

/// Opens a library and returns its file.
///
/// # Errors
/// The loader does not open it, or its file cannot be told.
pub(crate) fn find(name: &str) -> Result<PathBuf, NotFound> {
    // SAFETY: the names come from this program: vendors' libraries whose initialisers are made to run in any process.
    let library = unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL) }
        .map_err(|error| NotFound::NotOpened(NotOpened(error)))?;
    // Stays open: not every vendor's library survives being closed.
    std::mem::forget(library);
    let maps = fs::read_to_string("/proc/self/maps").map_err(NotFound::Maps)?;
    let path = maps.lines().filter_map(|line| line.find('/').map(|start| PathBuf::from(&line[start..])));
    // The name is often a link: `libcuda.so.1` is mapped as `libcuda.so.580.159.04`.
    let file = Path::new(name).file_name().and_then(|file| file.to_str()).unwrap_or(name);
    let stem = file.find(".so").map_or(file, |at| &file[..at + 3]);
    let mine = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(stem));
    path.into_iter().find(mine).ok_or(NotFound::NotMapped)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_library_is_found_and_a_missing_one_is_named() {
        let path = super::find("libc.so.6").unwrap();
        assert!(path.is_absolute() && path.exists(), "{path:?}");
        // A name with a folder is found by its last part.
        assert_eq!(super::find(path.to_str().unwrap()).unwrap(), path);
        // Its file is called otherwise: libnss_files.so.2 may be, libm.so.6 is always there.
        assert!(super::find("libm.so.6").is_ok());
        let missing = super::find("librailgauge-nowhere.so.1").unwrap_err();
        assert!(matches!(missing, super::NotFound::NotOpened(_)), "{missing:?}");
        assert!(missing.to_string().contains("librailgauge-nowhere.so.1: cannot open"), "{missing}");
    }
}
