//! `via = "docker"`: containers that docker runs. There is nothing to set.

use super::{Way, engine::Engine};

/// What the plan says of it.
pub fn way() -> &'static dyn Way {
    &Engine("containers (docker exec)")
}
