//! Shared libraries opened at run time, with versioned symbols.
//!
//! A binary that calls `ibv_*` by name carries `NEEDED libibverbs.so.1` and does not even start on a host without it.
//! So nothing is linked: every exported function is looked up by name and symbol version when it is first wanted.

use std::ffi::{CStr, CString, c_char, c_void};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use crate::system::library::NotOpened;

unsafe extern "C" {
    /// glibc's versioned lookup; the `libc` crate does not declare it.
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) -> *mut c_void;
}

/// An open library. It stays open for the life of the process: providers start threads of their own.
#[derive(Debug)]
pub(crate) struct Loaded {
    handle: *mut c_void,
    file: String,
}

impl Loaded {
    /// Opens `file`, or what the environment variable `variable` names instead.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] with the loader's own words and the `packages` to install.
    pub(crate) fn open(file: &str, variable: &str, packages: &str) -> Result<Self, Failure> {
        let wanted = std::env::var(variable).ok().filter(|path| !path.is_empty());
        let name = wanted.as_deref().unwrap_or(file);
        // SAFETY: running the initialisers of the host's own RDMA libraries is what opening them is for.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
            let cause = format!("cannot load {name}: {}", NotOpened(error));
            let failure = Failure::new(Stage::Open, Kind::Unsupported, cause);
            failure.remedy(match wanted {
                Some(_) => remedy::CORRECT_LIBRARY_VARIABLE.with([("variable", variable)]),
                None => remedy::INSTALL_LIBRARY.with([("packages", packages)]),
            })
        })?;
        Ok(Self { handle: library.into_raw(), file: name.to_owned() })
    }

    /// The name it was opened by.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Address of `name` at `version`, else at its default version.
    fn address(&self, name: &str, version: &str) -> Option<*mut c_void> {
        let (name, version) = (CString::new(name).ok()?, CString::new(version).ok()?);
        // SAFETY: the handle is open for good and both strings end in NUL.
        let versioned = unsafe { dlvsym(self.handle, name.as_ptr(), version.as_ptr()) };
        let found = if versioned.is_null() {
            // SAFETY: as above.
            unsafe { libc::dlsym(self.handle, CStr::as_ptr(&name)) }
        } else {
            versioned
        };
        (!found.is_null()).then_some(found)
    }

    /// The function `name` at `version`, if the library has it.
    ///
    /// # Safety
    /// `F` must be the function pointer type of that symbol.
    pub(crate) unsafe fn optional<F: Copy>(&self, name: &str, version: &str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "F must be a function pointer") };
        let address = self.address(name, version)?;
        // SAFETY: the address is not null, has the size of `F`, and the caller vouches for the type.
        Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }

    /// The function `name` at `version`.
    ///
    /// # Errors
    /// [`Kind::Unsupported`]: the library is older than any we know, or is another library.
    ///
    /// # Safety
    /// `F` must be the function pointer type of that symbol.
    pub(crate) unsafe fn required<F: Copy>(&self, name: &str, version: &str) -> Result<F, Failure> {
        // SAFETY: handed on to the caller.
        unsafe { self.optional(name, version) }.ok_or_else(|| {
            Failure::new(Stage::Open, Kind::Unsupported, format!("{} has no function {name}@{version}", self.file))
                .remedy(remedy::USE_RDMA_CORE)
        })
    }
}

// SAFETY: the handle is only handed to dlsym and dlvsym, which may be called from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above; nothing is ever changed through the handle.
unsafe impl Sync for Loaded {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_what_to_install() {
        let failure = Loaded::open("libnosuchthing.so.1", "RAILGAUGE_TEST_UNSET", "package-x").unwrap_err();
        assert_eq!(failure.kind, Kind::Unsupported);
        assert!(failure.cause.contains("libnosuchthing.so.1") && failure.cause.contains("cannot open"), "{failure}");
        assert_eq!(failure.remedy.as_deref(), Some(&remedy::INSTALL_LIBRARY.with([("packages", "package-x")])));
    }

    #[test]
    fn versioned_symbols_are_found_and_missing_ones_named() {
        let library = Loaded::open("libc.so.6", "RAILGAUGE_TEST_UNSET", "libc6").unwrap();
        type Getpid = unsafe extern "C" fn() -> libc::pid_t;
        // SAFETY: this is getpid's type.
        let getpid = unsafe { library.required::<Getpid>("getpid", "GLIBC_2.2.5") };
        // Another architecture has another base version; the default version is found then.
        // SAFETY: getpid has no preconditions.
        assert_eq!(unsafe { getpid.unwrap()() }.cast_unsigned(), std::process::id());
        // SAFETY: never called.
        let missing = unsafe { library.required::<Getpid>("no_such_function", "V_1") };
        assert!(missing.unwrap_err().cause.contains("no_such_function@V_1"));
    }
}
