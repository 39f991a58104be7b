//! `via = "podman"`: containers that podman runs. There is nothing to set.

use super::{Way, engine::Engine};

pub fn way() -> &'static dyn Way {
    &Engine("containers (podman exec)")
}
