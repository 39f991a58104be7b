//! libFuzzer on the target that `RAILGAUGE_FUZZ` names.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use railgauge_fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("RAILGAUGE_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|target| target.name == name);
    *found.unwrap_or_else(|| panic!("RAILGAUGE_FUZZ={name:?} is no target"))
});

fuzz_target!(|data: &[u8]| (TARGET.run)(data));
