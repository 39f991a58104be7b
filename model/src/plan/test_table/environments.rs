use std::collections::BTreeMap;

use toml::de::DeValue;

use crate::plan::{Table, limits::ENVIRONMENTS as MOST, read::texts_of};

pub fn environments(test: &Table<'_>) -> Vec<BTreeMap<String, String>> {
    let mut cells = vec![BTreeMap::new()];
    let Some(raw) = test.raw("env") else { return cells };
    let DeValue::Table(entries) = &*raw.value else { return cells };
    for (name, value) in entries {
        let (span, name) = (name.span(), name.get_ref().to_string());
        let add = |message: String, help: &str| test.wrong(span.clone(), message, help);
        let shape = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(shape) || name.starts_with(|c: char| c.is_ascii_digit()) {
            add(format!("`{name}` is not a valid name of an environment variable"), "letters, digits and underscores");
            continue;
        }
        if name.starts_with("NCCL_DEBUG") || name == "NCCL_COMM_ID" {
            add(format!("`{name}` is set by railgauge itself"), "leave it out: it proves what carried the bytes");
            continue;
        }
        let texts = texts_of(test.book, value.get_ref(), value.span());
        if texts.is_empty() {
            add(format!("`{name}` has no value"), "give it a string or a list of strings");
            continue;
        }
        if let Some(wrong) = texts.iter().find(|words| words.text.contains(['\n', '\r'])) {
            test.wrong(wrong.span.clone(), "a value of several lines", "write it on one line");
            continue;
        }
        if cells.len().saturating_mul(texts.len()) > MOST {
            add(format!("the matrix of environments has over {MOST} cells"), "take fewer values");
            return vec![BTreeMap::new()];
        }
        cells = cells
            .into_iter()
            .flat_map(|cell: BTreeMap<String, String>| {
                let name = &name;
                let with = move |text: &str| {
                    let mut cell = cell.clone();
                    cell.insert(name.clone(), text.to_owned());
                    cell
                };
                texts.iter().map(|words| with(&words.text)).collect::<Vec<_>>()
            })
            .collect();
    }
    cells
}
