//! A JSON Schema (draft 2020-12) of plans, from the tables of keys.

use serde_json::{Map, Value, json};

use super::{Key, Section, Shape, Unset};
use crate::plan::{LAST_RAIL, PLAN, WINDOW};

/// Identity of the schema (RFC 8141): a name, not an address, so that no editor looks for it in a network.
pub const ID: &str = "urn:railgauge:schema:plan";

/// The schema knows names, types and bounds; `railgauge check` does what needs the whole plan.
pub fn schema() -> Value {
    let mut schema = section(&PLAN);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["$id"] = json!(ID);
    schema["title"] = json!("railgauge plan");
    schema
}

fn section(section: &Section) -> Value {
    let properties: Map<String, Value> = section.keys.iter().map(|entry| (entry.name.to_owned(), key(entry))).collect();
    let mut schema = json!({
        "type": "object",
        "description": section.about,
        "properties": properties,
        "additionalProperties": false,
    });
    match section.path() {
        "defaults" => {}
        // A test may inherit required keys from [defaults], except its operation.
        "test" => schema["anyOf"] = json!([{ "required": ["op"] }, { "required": ["like"] }]),
        _ => {
            let required = section.keys.iter().filter(|key| matches!(key.unset, Unset::Required));
            schema["required"] = required.map(|key| key.name).collect();
        }
    }
    schema
}

fn key(key: &Key) -> Value {
    let mut value = shape(key.shape);
    let peers = if key.peers.is_empty() { String::new() } else { format!(" Known as {}.", key.peers) };
    value["description"] = json!(format!("{}{peers}", key.about));
    if let Unset::Is(text) = key.unset
        && let Some(default) = toml_value(text)
    {
        value["default"] = default;
    }
    value
}

fn shape(of: Shape) -> Value {
    let text = || json!({ "type": "string", "minLength": 1 });
    let pattern = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let some = |items: Value| json!({ "type": "array", "items": items, "minItems": 1, "uniqueItems": true });
    let pair = || json!({ "type": "array", "items": text(), "minItems": 2, "maxItems": 2 });
    let table = |values: Value| json!({ "type": "object", "additionalProperties": values });
    let either = |one: Value, other: Value| json!({ "oneOf": [one, other] });
    match of {
        Shape::Text | Shape::Path => text(),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Shape::Wholes(least, most) => either(shape(Shape::Whole(least, most)), some(shape(Shape::Whole(least, most)))),
        Shape::Word(words) => json!({ "enum": words() }),
        Shape::Words(words) => either(shape(Shape::Word(words)), some(shape(Shape::Word(words)))),
        Shape::Matrix => {
            let texts = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
            table(either(json!({ "type": "string" }), texts))
        }
        Shape::Time(..) => pattern(r"^[0-9]+(\.[0-9]+)? *(ns|us|µs|ms|s|min|h)$"),
        Shape::Sizes => {
            let list = json!({ "type": "array", "items": shape(Shape::SizeRange), "minItems": 1 });
            either(shape(Shape::SizeRange), list)
        }
        Shape::Size => pattern(r"^[0-9]+(\.[0-9]+)? *([KMG]iB|[kMG]B|B)?$"),
        Shape::SizeRange => json!({ "type": ["string", "integer"], "minimum": 1 }),
        Shape::Window => either(text(), section(&WINDOW)),
        Shape::Hosts | Shape::Command => either(text(), list(text())),
        Shape::Texts => list(text()),
        Shape::TwoGroups | Shape::TwoHosts => pair(),
        Shape::Pairs => list(pair()),
        Shape::Environment | Shape::Versions => table(json!({ "type": "string" })),
        Shape::Frequencies => table(pattern(r"^[0-9]+(\.[0-9]+)? */s$")),
        Shape::Groups => table(shape(Shape::Hosts)),
        Shape::Places => either(text(), table(text())),
        Shape::Rails => either(json!({ "enum": ["aligned", "crossed", "each"] }), shape(Shape::RailList)),
        Shape::RailList => some(json!({ "type": "integer", "minimum": 0, "maximum": LAST_RAIL })),
        Shape::Quantity => pattern(r"^[0-9]+(\.[0-9]+)? *[^0-9 ]+$"),
        Shape::Percent(least, most) => {
            either(json!({ "type": "number", "minimum": least, "maximum": most }), pattern(r"^[0-9]+(\.[0-9]+)? *%?$"))
        }
        Shape::PerEnd(ends) => either(shape(ends.keys[0].shape), section(ends)),
        Shape::Table(inner) => section(inner),
        Shape::Tables(inner) => list(section(inner)),
    }
}

fn toml_value(text: &str) -> Option<Value> {
    let table: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
    serde_json::to_value(table.get("value")?).ok()
}
