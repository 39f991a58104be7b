/// What is the same for all hosts of a launcher.
#[derive(Debug, Default)]
pub struct Way {
    pub words: String,
    /// Whether two hosts with one address and one port are one host.
    pub is_found_by_address: bool,
    /// Those of a host's keys `user` and `port` that have an effect.
    pub uses: Vec<&'static str>,
    /// Whether all hosts are the controller's machine and share its slots and processors.
    pub is_one_machine: bool,
}
