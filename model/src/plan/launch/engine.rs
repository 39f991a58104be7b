use super::Way;

pub(super) struct Engine(pub &'static str);

impl Way for Engine {
    fn words(&self) -> String {
        self.0.into()
    }

    fn is_found_by_address(&self) -> bool {
        true
    }

    /// `user`: as whom the agent runs in the container.
    fn uses(&self, key: &str) -> bool {
        key == "user"
    }

    fn is_one_machine(&self) -> bool {
        true
    }
}
