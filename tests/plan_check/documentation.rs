//! docs/plan-format.md and the JSON Schema say what the code reads.

use std::path::Path;

use railgauge_model::plan::{
    format::{Unset, reference, schema, sections},
    load,
};

fn document() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/plan-format.md")
}

/// With `UPDATE_DOCS=1` the tables of the document are written instead of compared.
#[test]
fn the_tables_of_the_document_are_those_of_the_code() {
    let mut text = std::fs::read_to_string(document()).unwrap();
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    for (name, table) in reference::blocks() {
        let (open, close) = (reference::open(&name), reference::close(&name));
        let start =
            text.find(&open).unwrap_or_else(|| panic!("docs/plan-format.md has no line {open}")) + open.len() + 1;
        let end = start + text[start..].find(&close).unwrap_or_else(|| panic!("no line {close}"));
        if update {
            text.replace_range(start..end, &table);
        } else {
            assert_eq!(&text[start..end], table, "{name}: run the tests with UPDATE_DOCS=1");
        }
    }
    if update {
        std::fs::write(document(), text).unwrap();
    }
}

/// Every block of TOML that begins with a plan's name is a whole plan.
#[test]
fn the_examples_of_the_document_are_right() {
    let text = std::fs::read_to_string(document()).unwrap();
    let mut count = 0;
    for block in text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        if block.starts_with("name = ") {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("example.toml");
            std::fs::write(&path, block).unwrap();
            load(&path).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            count += 1;
        }
    }
    assert!(count >= 2, "only {count} examples");
}

#[test]
fn the_schema_knows_every_key_with_its_bounds() {
    let schema = schema::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let test = &schema["properties"]["test"]["items"];
    assert_eq!(test["additionalProperties"], false);
    assert_eq!(test["properties"]["qps"]["oneOf"][0]["maximum"], 1024);
    assert_eq!(test["properties"]["knobs"]["properties"]["retry_count"]["maximum"], 7);
    assert_eq!(schema["properties"]["launch"]["properties"]["timeout"]["default"], "20s");
    assert_eq!(schema["properties"]["defaults"]["properties"].get("op"), None);
    assert!(schema["properties"]["defaults"]["properties"].get("qps").is_some());
    let described = |value: &serde_json::Value| value["description"].as_str().is_some_and(|text| !text.is_empty());
    for (name, key) in test["properties"].as_object().unwrap() {
        assert!(described(key), "{name} is not described");
    }
}

/// What the tables of keys say must itself be a plan's text: presets and examples are read like values.
#[test]
fn presets_and_examples_have_the_shape_of_their_keys() {
    for section in sections() {
        for (index, key) in section.keys.iter().enumerate() {
            let place = format!("{} {}", section.header, key.name);
            assert!(section.keys[..index].iter().all(|other| other.name != key.name), "{place} is there twice");
            assert!(key.about.ends_with('.') && key.about.len() > 8, "{place} is not described");
            let example = Some(key.shape.example()).filter(|text| !text.contains('…'));
            let preset = if let Unset::Is(text) = key.unset { Some(text.to_owned()) } else { None };
            for text in example.into_iter().chain(preset) {
                let table: toml::de::DeValue<'_> =
                    toml::de::DeValue::parse(&text).unwrap_or_else(|e| panic!("{place}: {e}")).into_inner();
                assert!(key.shape.fits(&table), "{place}: {text}");
            }
        }
    }
}
