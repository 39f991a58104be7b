//! The libraries behind this one, opened by name, and their functions by symbol version.
//!
//! This library is not linked with them: a lookup in its handle would then find theirs behind it.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::OnceLock,
};

unsafe extern "C" {
    /// glibc's versioned lookup; the `libc` crate does not declare it.
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) -> *mut c_void;
}

/// A library that calls are forwarded to.
pub struct Behind {
    name: &'static CStr,
    handle: OnceLock<usize>,
}

pub static IBVERBS: Behind = Behind { name: c"libibverbs.so.1", handle: OnceLock::new() };
pub static RDMACM: Behind = Behind { name: c"librdmacm.so.1", handle: OnceLock::new() };

impl Behind {
    /// Address of `name` at `version`, else at its default version; 0 if there is none.
    fn address(&self, name: &CStr, version: &CStr) -> usize {
        let open = || {
            // SAFETY: opening the host's own RDMA libraries is what the traced program does too.
            unsafe { libc::dlopen(self.name.as_ptr(), libc::RTLD_NOW as c_int) }.addr()
        };
        let handle = std::ptr::with_exposed_provenance_mut(*self.handle.get_or_init(open));
        // SAFETY: the handle is open for good, or null; both strings end in NUL.
        let versioned = unsafe { dlvsym(handle, name.as_ptr(), version.as_ptr()) };
        if versioned.is_null() {
            // SAFETY: as above.
            unsafe { libc::dlsym(handle, name.as_ptr()) }.addr()
        } else {
            versioned.addr()
        }
    }
}

/// One function of such a library, looked up at its first call.
pub struct Function {
    behind: &'static Behind,
    name: &'static CStr,
    version: &'static CStr,
    address: OnceLock<usize>,
}

impl Function {
    pub const fn new(behind: &'static Behind, name: &'static CStr, version: &'static CStr) -> Self {
        Self { behind, name, version, address: OnceLock::new() }
    }

    /// The function as `F`. A program that calls what the library behind lacks would not have started without this one:
    /// it ends here, by name.
    ///
    /// # Safety
    /// `F` must be the type of the function.
    pub unsafe fn get<F: Copy>(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<usize>(), "F must be a function pointer") };
        let address = *self.address.get_or_init(|| self.behind.address(self.name, self.version));
        if address == 0 {
            eprintln!("verbs_trace: {} has no {}", self.behind.name.to_string_lossy(), self.name.to_string_lossy());
            std::process::abort();
        }
        // SAFETY: not null, of the size of a function pointer, and the caller vouches for the type.
        unsafe { std::mem::transmute_copy::<usize, F>(&address) }
    }
}

/// Exports functions under their own names. Those with a block run it, in which `real` is the function behind; the others
/// are forwarded as they are.
#[macro_export]
macro_rules! exported {
    (@body $real:ident ($($arg:ident),*) ) => { $real($($arg),*) };
    (@body $real:ident ($($arg:ident),*) $body:block) => { $body };
    (
        $behind:ident, $real:ident:
        $($name:ident @ $version:literal ($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)? $(= $body:block)? ;)+
    ) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(clippy::used_underscore_items, reason = "the name is libibverbs'")]
            #[allow(clippy::macro_metavars_in_unsafe, reason = "a function's body is as unsafe as the function")]
            pub unsafe extern "C" fn $name($($arg: $type),*) $(-> $out)? {
                type Type = unsafe extern "C" fn($($type),*) $(-> $out)?;
                const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
                    concat!(stringify!($name), "\0").as_bytes()) { Ok(name) => name, Err(_) => c"" };
                const VERSION: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
                    concat!($version, "\0").as_bytes()) { Ok(version) => version, Err(_) => c"" };
                static FUNCTION: $crate::real::Function =
                    $crate::real::Function::new(&$crate::real::$behind, NAME, VERSION);
                // SAFETY: the type is that of the headers; callers keep to them, as they must with the library behind.
                unsafe {
                    let $real: Type = FUNCTION.get();
                    $crate::exported!(@body $real ($($arg),*) $($body)?)
                }
            }
        )+
    };
}
