//! How far an agent's clock may be from the controller's.

use railgauge_wire::NanosecondsF64;

/// Factor by which an agent's clock may run faster than the controller's. Far above the error of crystals, because
/// stopped virtual machines catch up.
pub(super) const CLOCK_TOLERANCE: f64 = 1.02;
pub(super) const CLOCK_ALLOWANCE: NanosecondsF64 = NanosecondsF64(10e6);
