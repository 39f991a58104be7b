//! Remedies of parts: for a bad one by its kind, for an open one by the reason.

use railgauge_wire::remedy::{self, Entry};

use super::{Localisation, Named, OpenReason, node};

impl Localisation {
    /// For a bad part. Faults of its GPUs during the cases come first.
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

    /// What may settle an open part. Proposes the same run only if its result may differ.
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
    /// What may settle a part that is open for this reason. `controls_failed`: some of its control pairs have no value.
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
