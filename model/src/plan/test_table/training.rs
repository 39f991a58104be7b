//! Training steps: the gradients of a model, their buckets, and the length of the backward pass.

use railgauge_wire::{Bytes, Datatype, TestMetric, Training};
use toml::de::DeValue;

use super::{kind::Kind, sizes};
use crate::plan::{Mistake, Table, grammar::quantity};

pub const OWN: &[&str] = &["model", "bucket", "first_bucket", "compute"];

/// Models and their parameters, each with one gradient.
///
/// Counted from the dimensions in He et al. 2016 (torchvision's resnet50, with its batch normalisation), Devlin et al. 2019 (with the
/// pooling layer), Radford et al. 2019, Touvron et al. 2023 and Grattafiori et al. 2024.
const MODELS: &[(&str, u64)] = &[
    ("resnet-50", 25_557_032),
    ("bert-large", 335_141_888),
    ("gpt-2-xl", 1_557_611_200),
    ("llama-2-7b", 6_738_415_616),
    ("llama-3-8b", 8_030_261_248),
];

pub fn models() -> Vec<&'static str> {
    MODELS.iter().map(|(name, _)| *name).collect()
}

/// The size of all gradients: those of `model`, or `sizes`; `None` after reporting a mistake.
pub fn bytes(test: &Table<'_>, kind: &Kind) -> Option<Vec<Bytes>> {
    if kind.metric != Some(TestMetric::Step) {
        return sizes::read(test, kind);
    }
    let Some(model) = test.word("model") else {
        if test.written("model").is_none() && test.raw("sizes").is_none() {
            let help = "for example model = \"resnet-50\", or sizes = \"100MB\" of gradients";
            return test.reject(test.span.clone(), "a training step needs `model` or `sizes`", help);
        }
        return sizes::read(test, kind);
    };
    if let Some(span) = test.name_span("sizes") {
        let mistake = Mistake::at(span, "both `sizes` and `model` are set").also(model.span.clone(), "the model");
        test.book.add(mistake.help("the model gives the size of the gradients: leave one of them out"));
        return None;
    }
    let [datatype] = datatypes(test)[..] else {
        return test.reject(
            model.span,
            "a `model` with several datatypes",
            "give one `datatype`, or write one test for each",
        );
    };
    let parameters = MODELS.iter().find(|(name, _)| *name == model.value).map(|(_, parameters)| *parameters)?;
    Some(vec![datatype.bytes() * parameters])
}

fn datatypes(test: &Table<'_>) -> Vec<Datatype> {
    let Some(raw) = test.raw("datatype") else { return vec![Datatype::F32] };
    let words: Vec<&str> = match &*raw.value {
        DeValue::Array(list) => list.iter().filter_map(|word| word.get_ref().as_str()).collect(),
        one => one.as_str().into_iter().collect(),
    };
    words.into_iter().filter_map(Datatype::from_word).collect()
}

/// The step around a collective; `None` for other metrics, with which its keys are mistakes.
pub fn read(test: &Table<'_>, kind: &Kind) -> Option<Training> {
    if kind.metric != Some(TestMetric::Step) {
        if kind.metric.is_some() {
            test.refuse(OWN.iter().copied(), "applies only to a training step (metric = \"step\")");
        }
        return None;
    }
    if let Some(span) = test.name_span("graph").filter(|_| test.flag("graph").is_some_and(|graph| graph.value)) {
        test.wrong(span, "the buckets of a training step are not captured into a CUDA graph", "leave `graph` out");
    }
    let size = |name| test.parsed(name, quantity::size).map(|at| at.value);
    let compute = test.time("compute");
    if compute.is_none() && test.written("compute").is_none() {
        let message = "a training step needs `compute`, the time of its backward pass";
        test.wrong(test.span.clone(), message, "for example compute = \"100ms\"; \"0s\" overlaps nothing");
    }
    Some(Training {
        model: test.word("model").map(|model| model.value.to_owned()),
        bucket: size("bucket")?,
        first_bucket: size("first_bucket")?,
        compute: compute?.value,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use railgauge_wire::{Bytes, Nanoseconds};

    use crate::plan::{Mistakes, Plan, parse};

    const HEAD: &str = "name = \"p\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"a[1-4]\"]\n\
                        [[test]]\nmetric = \"step\"\ntransport = \"tcp\"\n";

    fn read(rest: &str) -> Result<Plan, Mistakes> {
        parse("p.toml", &format!("{HEAD}{rest}"), Path::new("")).map(|(plan, _)| plan)
    }

    #[test]
    fn a_model_gives_the_size_and_buckets_are_those_of_pytorch() {
        let plan =
            read("op = \"all_reduce\"\nmodel = \"llama-3-8b\"\ndatatype = \"bf16\"\ncompute = \"900ms\"\n").unwrap();
        let test = &plan.tests[0];
        assert_eq!(test.sizes, [Bytes(16_060_522_496)]);
        let training = test.collective.as_ref().unwrap().training.as_ref().unwrap();
        assert_eq!(
            (training.bucket, training.first_bucket, training.compute),
            (Bytes::from_mib(25), Bytes::from_mib(1), Nanoseconds::from_millis(900))
        );
        let sizes =
            read("op = \"all_reduce\"\nsizes = [\"1MiB\", \"8MiB\"]\nbucket = \"2MiB\"\ncompute = \"0s\"\n").unwrap();
        assert_eq!(sizes.tests[0].sizes, [Bytes::from_mib(1), Bytes::from_mib(8)]);
    }

    #[test]
    fn what_is_no_training_step_is_said() {
        for (rest, words) in [
            ("op = \"broadcast\"\nmodel = \"resnet-50\"\ncompute = \"1ms\"\n", "broadcast does not support metric"),
            ("op = \"write\"\n", "write does not support metric"),
            ("op = \"all_reduce\"\ncompute = \"1ms\"\n", "needs `model` or `sizes`"),
            ("op = \"all_reduce\"\nmodel = \"resnet-50\"\n", "needs `compute`"),
            (
                "op = \"all_reduce\"\nmodel = \"resnet-50\"\nsizes = 8\ncompute = \"1ms\"\n",
                "both `sizes` and `model` are set",
            ),
            (
                "op = \"all_reduce\"\nmodel = \"resnet-50\"\ndatatype = [\"f32\", \"bf16\"]\ncompute = \"1ms\"\n",
                "several datatypes",
            ),
            ("op = \"all_reduce\"\nmodel = \"resnet-51\"\ncompute = \"1ms\"\n", "resnet-51"),
        ] {
            let mistakes = read(rest).unwrap_err().to_string();
            assert!(mistakes.contains(words), "{rest}: {mistakes}");
        }
        let other = HEAD.replace("step", "bandwidth") + "op = \"all_reduce\"\nbucket = \"1MiB\"\n";
        let mistakes = parse("p.toml", &other, Path::new("")).map(drop).unwrap_err().to_string();
        assert!(mistakes.contains("only to a training step"), "{mistakes}");
    }
}
