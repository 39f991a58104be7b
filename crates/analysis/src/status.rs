//! Result of a judgement.

railgauge_wire::words! {
    #[derive(Default)]
    Status {
        Pass = "pass",
        NotRun = "not-run",
        #[default]
        Inconclusive = "inconclusive",
        Fail = "fail",
    }
}

impl Status {
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Inconclusive | Self::NotRun => 3,
        }
    }
}
