use super::way::Way;

pub fn way() -> Way {
    engine("containers (podman exec)")
}

pub(super) fn engine(words: &str) -> Way {
    // `user`: as whom the agent runs in the container.
    Way { words: words.into(), is_found_by_address: true, uses: vec!["user"], is_one_machine: true }
}
