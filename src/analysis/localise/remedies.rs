//! What to do about a part: of one that was shown to be bad it depends on what the part is, of one that was not on why nothing is known.

use railgauge_wire::remedy::{self, Entry};

use super::{Localisation, Named, OpenReason, node};

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
        part.meanwhile_remedy.unwrap_or_else(by_kind)
    }

    /// What may settle one of its parts that was shown to be neither bad nor good. The same run once more is proposed only where it may come
    /// out differently.
    pub fn settles(&self, part: &Named) -> Entry {
        let controls_failed = self.controls.iter().any(|control| control.value.is_none());
        match part.open {
            Some(open) => open.remedy(controls_failed),
            None if self.confirms => remedy::MEASURE_AGAIN,
            None => remedy::CONFIRM_SUSPECTS,
        }
    }
}

impl OpenReason {
    /// What may settle a part that is open for this. `controls_failed`: some of the pairs that it was to be held against have no value.
    const fn remedy(self, controls_failed: bool) -> Entry {
        match self {
            Self::NoControls if controls_failed => remedy::MEASURE_AGAIN,
            Self::NoControls | Self::TooFewToTell | Self::EndUnknown => remedy::MORE_PARTNERS,
            Self::TooFew | Self::Mixed | Self::Unclear | Self::UnderLoad | Self::ControlsUnsteady | Self::Busy => {
                remedy::MEASURE_AGAIN
            }
            Self::Ways => remedy::SLOW_PATH,
            Self::Undecided => remedy::SAY_WHAT_IS_MEANT,
            Self::VirtualMachine => remedy::OTHER_VIRTUAL_MACHINES,
            Self::SharedMachine => remedy::HOSTS_OF_ONE_MACHINE,
            Self::SharedGpu => remedy::WAIT_FOR_GPU,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_the_same_is_not_to_be_measured_again() {
        for open in [
            OpenReason::NoControls,
            OpenReason::TooFewToTell,
            OpenReason::EndUnknown,
            OpenReason::Ways,
            OpenReason::Undecided,
            OpenReason::VirtualMachine,
            OpenReason::SharedMachine,
            OpenReason::SharedGpu,
        ] {
            assert_ne!(open.remedy(false).id, remedy::MEASURE_AGAIN.id, "{open:?}");
        }
        for open in [OpenReason::Busy, OpenReason::ControlsUnsteady, OpenReason::Mixed, OpenReason::TooFew] {
            assert_eq!(open.remedy(false).id, remedy::MEASURE_AGAIN.id, "{open:?}");
        }
        assert_eq!(OpenReason::NoControls.remedy(true).id, remedy::MEASURE_AGAIN.id);
    }
}
