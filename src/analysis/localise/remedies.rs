//! What to do about a part that was shown to be bad: it depends on what the part is.

use railgauge_wire::remedy::{self, Entry};

use super::{Localisation, Named, node};

impl Localisation {
    /// What to do about one of its parts that was shown to be bad. What was bad about its GPUs meanwhile comes first.
    pub fn remedy(&self, part: &Named) -> Entry {
        let by_kind = || match part.kind {
            "GPU" => remedy::SLOW_GPU,
            _ if self.counted == node::COUNTED => remedy::SLOW_WITHIN_HOST,
            "host" => remedy::SLOW_HOST,
            "nic" => remedy::SLOW_PORT,
            "path" => remedy::SLOW_PATH,
            _ => remedy::SLOW_SHARED_PART,
        };
        part.gpus_remedy.unwrap_or_else(by_kind)
    }
}
