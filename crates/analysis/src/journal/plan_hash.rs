//! The hash by which a journal identifies its plan.

use railgauge_model::plan::subset::Subset;
use sha2::{Digest, Sha256};

/// SHA-256 of a plan's text and of the selection from it, hexadecimal: for comparisons a part of a plan is another
/// plan, and a night that measured it is not a night of the whole.
pub fn plan_hash(source: impl AsRef<[u8]>, part: Option<&Subset>) -> String {
    let mut hash = Sha256::new_with_prefix(source);
    if let Some(subset) = part {
        // Names and numbers always serialise.
        hash.update(serde_json::to_vec(subset).unwrap_or_default());
    }
    hex::encode(hash.finalize())
}
