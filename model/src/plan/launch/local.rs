use super::way::Way;

pub fn way() -> Way {
    Way { words: "agents as processes of this machine".into(), is_one_machine: true, ..Way::default() }
}
