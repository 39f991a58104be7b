//! What may be bad, as far as the tests separate it.

use std::collections::HashMap;

use super::{
    Fabric, Part,
    table::{Table, counted},
};

/// Parts that the same flows pass with the same probability: alone, the tests do not separate them.
pub(super) struct Class {
    /// The parts, those with the fewest links first.
    pub(super) members: Vec<Part>,
}

pub(super) struct Candidates {
    pub(super) classes: Vec<Class>,
    of_cell: Vec<Vec<u32>>,
    of_part: HashMap<Part, usize>,
}

impl Candidates {
    pub(super) fn new(fabric: &Fabric, table: &Table) -> Self {
        let mut found: HashMap<Vec<(u32, u16)>, usize> = HashMap::new();
        let mut classes: Vec<Class> = Vec::new();
        let mut of_part = HashMap::new();
        let mut of_cell = vec![Vec::new(); table.cells.len()];
        for part in fabric.parts() {
            let touched: Vec<(u32, u16)> = counted(&table.touching(&fabric.links_of(&part))).collect();
            if touched.is_empty() {
                continue;
            }
            if let Some(&class) = found.get(&touched) {
                classes[class].members.push(part);
                of_part.insert(part, class);
                continue;
            }
            touched.iter().for_each(|(cell, _)| of_cell[*cell as usize].push(classes.len() as u32));
            found.insert(touched, classes.len());
            of_part.insert(part, classes.len());
            classes.push(Class { members: vec![part] });
        }
        Self { classes, of_cell, of_part }
    }

    /// A part with all that the tests do not separate from it.
    pub(super) fn members(&self, part: &Part) -> Vec<Part> {
        self.of_part.get(part).map_or_else(|| vec![*part], |&class| self.classes[class].members.clone())
    }

    /// Classes that share a flow of these, each once.
    pub(super) fn near(&self, cells: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut near: Vec<u32> = cells.flat_map(|cell| &self.of_cell[cell as usize]).copied().collect();
        near.sort_unstable();
        near.dedup();
        near
    }
}
