use railgauge_model::{journal::event::Case, plan::model::Test};
use railgauge_wire::Bytes;

pub(crate) fn measures(case: &Case, test: &Test) -> bool {
    let qps = if test.collective.is_some() { case.cell.qps == 1 } else { test.qps.contains(&case.cell.qps) };
    qps && measures_on_any(case, test)
}

pub(crate) fn measures_on_any(case: &Case, test: &Test) -> bool {
    let cell = &case.cell;
    let wants = (test.op, test.metric, test.transport, test.service, test.memory);
    let size = if test.op.is_atomic() { cell.size == Bytes(8) } else { test.sizes.contains(&cell.size) };
    let applied = match &cell.applied {
        Some(value) => test.values().iter().any(|known| **known == **value),
        None => test.values().is_empty(),
    };
    wants == (cell.op, cell.metric, cell.transport, cell.service, cell.memory) && size && applied
}
