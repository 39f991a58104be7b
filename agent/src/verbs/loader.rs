//! libibverbs and librdmacm of this host, or those that environment variables name.

use libloading::os::unix::RTLD_NOW;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use crate::system::library::{Library, NoFunction};

/// Opens `file`, or what the environment variable `variable` names instead, and fills the table of its functions.
pub(super) fn load<T>(
    file: &str,
    variable: &str,
    packages: &str,
    look_up: fn(&Library, usize, String) -> Result<T, NoFunction>,
) -> Result<T, Failure> {
    let wanted = std::env::var(variable).ok().filter(|path| !path.is_empty());
    let name = wanted.as_deref().unwrap_or(file);
    let unusable = |cause| Failure::new(Stage::Open, Kind::Unsupported, cause);
    let library = Library::open(name, RTLD_NOW).map_err(|error| {
        unusable(format!("cannot load {name}: {error}")).remedy(match wanted {
            Some(_) => remedy::CORRECT_LIBRARY_VARIABLE.with([("variable", variable)]),
            None => remedy::INSTALL_LIBRARY.with([("packages", packages)]),
        })
    })?;
    let missing =
        |NoFunction(symbol)| unusable(format!("{name} has no function {symbol}")).remedy(remedy::USE_RDMA_CORE);
    look_up(&library, 0, name.to_owned()).map_err(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_what_to_install() {
        let found = |_: &Library, _, _| -> Result<(), NoFunction> { unreachable!() };
        let failure = load("libnosuchthing.so.1", "RAILGAUGE_TEST_UNSET", "package-x", found).unwrap_err();
        assert_eq!(failure.kind, Kind::Unsupported);
        assert!(failure.cause.contains("libnosuchthing.so.1") && failure.cause.contains("cannot open"), "{failure}");
        assert_eq!(failure.remedy.as_deref(), Some(&remedy::INSTALL_LIBRARY.with([("packages", "package-x")])));
    }

    #[test]
    fn a_library_without_the_functions_is_refused() {
        let lacks = |_: &Library, _, _| -> Result<(), NoFunction> { Err(NoFunction("ibv_x@V_1")) };
        let failure = load("libc.so.6", "RAILGAUGE_TEST_UNSET", "libc6", lacks).unwrap_err();
        assert_eq!(failure.remedy.as_deref(), Some(&remedy::USE_RDMA_CORE.into()));
        assert!(failure.cause.contains("ibv_x@V_1"), "{failure}");
    }
}
