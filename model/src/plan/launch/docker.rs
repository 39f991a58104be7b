use super::{Way, podman::engine};

pub fn way() -> Way {
    engine("containers (docker exec)")
}
