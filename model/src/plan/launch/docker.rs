use super::{Way, engine::Engine};

pub fn way() -> &'static dyn Way {
    &Engine("containers (docker exec)")
}
