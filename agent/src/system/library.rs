//! Shared libraries opened at run time.
//!
//! A binary linked to a library lists it in `NEEDED` and does not start on a host without it. So [`functions`] declares a table of
//! functions, which are looked up when the library is first needed.

use std::{
    any::type_name,
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt, fs,
    ops::Deref,
    path::{Path, PathBuf},
    ptr::NonNull,
};

use libloading::os::unix::{RTLD_LAZY, RTLD_LOCAL};

/// The loader's message for one library, or for several names; or why the file of an open one is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotOpened(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no function {0}")]
pub(crate) struct NoFunction(pub &'static str);

/// An object of a library, destroyed once. Holders declare it before what it was made of.
pub(crate) struct Owned<T>(NonNull<T>, unsafe extern "C" fn(*mut T) -> c_int);

impl<T> Owned<T> {
    /// `None` if the object is null.
    ///
    /// # Safety
    /// The library has just made `object` for the caller, who destroys it by this function and only by dropping this, and allows its calls on
    /// it from any thread.
    pub(crate) unsafe fn new(object: *mut T, destroy: unsafe extern "C" fn(*mut T) -> c_int) -> Option<Self> {
        NonNull::new(object).map(|object| Self(object, destroy))
    }
}

// SAFETY: as `new` requires.
unsafe impl<T> Send for Owned<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Owned<T> {}

impl<T> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Deref for Owned<T> {
    type Target = NonNull<T>;

    fn deref(&self) -> &NonNull<T> {
        &self.0
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: as `new` requires; everything made of it holds an Arc of its owner, and so is gone.
        let status = unsafe { (self.1)(self.0.as_ptr()) };
        if status != 0 {
            crate::system::log!("an object ({}) is not destroyed: status {status}", type_name::<T>());
        }
    }
}

unsafe extern "C" {
    /// glibc's versioned lookup; the `libc` crate does not declare it.
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) -> *mut c_void;
}

/// An open library. It is never closed: vendors' libraries have threads and exit handlers of their own.
#[derive(Debug)]
pub(crate) struct Library {
    handle: *mut c_void,
    name: String,
}

// SAFETY: the handle is only given to dlsym and dlvsym, which may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: as above; nothing is changed through the handle.
unsafe impl Sync for Library {}

impl Library {
    pub(crate) fn open(name: &str, binding: c_int) -> Result<Self, NotOpened> {
        // SAFETY: the names come from this program, or from the plan's author: vendors' libraries whose initialisers are made to run in any
        // process.
        let library = unsafe { libloading::os::unix::Library::open(Some(name), binding | RTLD_LOCAL) };
        // The outer error only says that dlopen failed.
        let words = |error: libloading::Error| {
            std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
        };
        let library = library.map_err(|error| NotOpened(words(error)))?;
        Ok(Self { handle: library.into_raw(), name: name.to_owned() })
    }

    pub(crate) fn first(names: &[&str]) -> Result<Self, NotOpened> {
        let mut why = Vec::new();
        for name in names {
            match Self::open(name, RTLD_LAZY) {
                Ok(library) => return Ok(library),
                Err(NotOpened(error)) => why.push(error),
            }
        }
        Err(NotOpened(why.join("; ")))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `NAME`, or `NAME@VERSION`, which falls back to the default version.
    fn address(&self, symbol: &str) -> Option<NonNull<c_void>> {
        let (name, version) = symbol.split_once('@').map_or((symbol, None), |(name, version)| (name, Some(version)));
        let name = CString::new(name).ok()?;
        let versioned = version.and_then(|version| {
            let version = CString::new(version).ok()?;
            // SAFETY: the library is open and both strings end in NUL.
            NonNull::new(unsafe { dlvsym(self.handle, name.as_ptr(), version.as_ptr()) })
        });
        // SAFETY: as above.
        versioned.or_else(|| NonNull::new(unsafe { libc::dlsym(self.handle, name.as_ptr()) }))
    }

    /// `None` where the library has no such symbol, or the name is empty.
    ///
    /// # Safety
    /// `F` must be the function pointer type of that symbol.
    pub(crate) unsafe fn optional<F: Copy>(&self, symbol: &str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "F must be a function pointer") };
        let address = if symbol.is_empty() { None } else { self.address(symbol) }?;
        // SAFETY: the address is not null, has the size of `F`, and the caller vouches for the type.
        Some(unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&address) })
    }

    /// # Safety
    /// As [`Library::optional`].
    pub(crate) unsafe fn required<F: Copy>(&self, symbol: &'static str) -> Result<F, NoFunction> {
        // SAFETY: the caller's duty.
        unsafe { self.optional(symbol) }.ok_or(NoFunction(symbol))
    }
}

/// `None` for null.
///
/// # Safety
/// The text is null or ends with NUL, and lives through the call.
pub(crate) unsafe fn said(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's duty.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned())
}

/// Declares a table of functions of a library with `look_up`, which fills it. A function has a symbol, `NAME` or `NAME@VERSION`, or one
/// for each of several libraries with the same functions (selected by `at`); an empty one means that the library lacks the function.
macro_rules! functions {
    (
        $(#[$about:meta])*
        $vis:vis struct $table:ident { $($(#[$note:meta])* $fvis:vis $field:ident: $kind:ty,)* }
        required { $($(#[$doc:meta])* $name:ident = $($symbol:literal)|+: fn($($arg:ty),* $(,)?) $(-> $out:ty)?,)* }
        optional { $($(#[$odoc:meta])* $oname:ident = $($osymbol:literal)|+: fn($($oarg:ty),* $(,)?) $(-> $oout:ty)?,)* }
    ) => {
        $(#[$about])*
        $vis struct $table {
            $($(#[$note])* $fvis $field: $kind,)*
            $($(#[$doc])* pub(crate) $name: unsafe extern "C" fn($($arg),*) $(-> $out)?,)*
            $($(#[$odoc])* pub(crate) $oname: Option<unsafe extern "C" fn($($oarg),*) $(-> $oout)?>,)*
        }

        impl $table {
            fn look_up(
                library: &$crate::system::library::Library, at: usize, $($field: $kind),*
            ) -> Result<Self, $crate::system::library::NoFunction> {
                // SAFETY: each symbol has the signature that the library's header declares for it; the library is never closed.
                unsafe {
                    Ok(Self {
                        $($name: library.required([$($symbol),+].get(at).copied().unwrap_or_default())?,)*
                        $($oname: library.optional([$($osymbol),+].get(at).copied().unwrap_or_default()),)*
                        $($field,)*
                    })
                }
            }
        }
    };
}
pub(crate) use functions;

pub(crate) fn find(name: &str) -> Result<PathBuf, NotOpened> {
    Library::open(name, RTLD_LAZY)?;
    let maps = fs::read_to_string("/proc/self/maps")
        .map_err(|error| NotOpened(format!("found, but /proc/self/maps: {error}")))?;
    let path = maps.lines().filter_map(|line| line.find('/').map(|start| PathBuf::from(&line[start..])));
    // The name is often a link: `libcuda.so.1` is mapped as `libcuda.so.580.159.04`.
    let file = Path::new(name).file_name().and_then(|file| file.to_str()).unwrap_or(name);
    let stem = file.find(".so").map_or(file, |at| &file[..at + 3]);
    let mine = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(stem));
    path.into_iter().find(mine).ok_or_else(|| NotOpened("found, but not in /proc/self/maps".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_and_a_missing_one_is_named() {
        let path = find("libc.so.6").unwrap();
        assert!(path.is_absolute() && path.exists(), "{path:?}");
        // A name with a folder is found by its last part.
        assert_eq!(find(path.to_str().unwrap()).unwrap(), path);
        // libnss_files.so.2 may be mapped under another name; libm.so.6 is always there.
        assert!(find("libm.so.6").is_ok());
        let missing = find("librailgauge-nowhere.so.1").unwrap_err();
        assert!(missing.to_string().contains("librailgauge-nowhere.so.1: cannot open"), "{missing}");
    }

    #[test]
    fn versioned_symbols_are_found_and_missing_ones_named() {
        let library = Library::open("libc.so.6", RTLD_LAZY).unwrap();
        type Getpid = unsafe extern "C" fn() -> libc::pid_t;
        // Base versions differ by architecture; the default version is found then.
        for symbol in ["getpid", "getpid@GLIBC_2.2.5", "getpid@V_1"] {
            // SAFETY: this is getpid's type.
            let getpid = unsafe { library.required::<Getpid>(symbol) };
            // SAFETY: getpid has no preconditions.
            assert_eq!(unsafe { getpid.unwrap()() }.cast_unsigned(), std::process::id());
        }
        // SAFETY: never called.
        let missing = unsafe { library.required::<Getpid>("no_such_function@V_1") };
        assert_eq!(missing.unwrap_err(), NoFunction("no_such_function@V_1"));
        // SAFETY: never called.
        assert!(unsafe { library.optional::<Getpid>("") }.is_none());
    }
}
