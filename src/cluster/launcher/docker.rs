use railgauge_model::plan::model::Launch;

use super::{Launcher, container::Engine};
use crate::cluster::Trouble;

pub(super) fn prepare(_launch: &Launch) -> Result<Box<dyn Launcher>, Trouble> {
    Ok(Box::new(Engine("docker")))
}
