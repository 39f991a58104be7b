//! Lines of the output, by their names in the schemas.

use serde::Serialize;
use serde_with::skip_serializing_none;

/// Of the specification.
pub(super) const VERSION: Content<'_> = Content::SchemaVersion { major: 2, minor: 0 };

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line<'a> {
    pub(super) sequence_number: u64,
    pub(super) timestamp: String,
    #[serde(flatten)]
    pub(super) content: Content<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Content<'a> {
    SchemaVersion {
        major: u32,
        minor: u32,
    },
    TestRunArtifact(OfRun<'a>),
    TestStepArtifact {
        test_step_id: &'a str,
        #[serde(flatten)]
        of: OfStep<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OfRun<'a> {
    TestRunStart(Box<TestRunStart<'a>>),
    TestRunEnd { status: TestStatus, result: TestResult },
    Log { severity: Severity, message: String },
    Error { symptom: String, message: String },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OfStep<'a> {
    TestStepStart { name: &'a str },
    TestStepEnd { status: TestStatus },
    Measurement(Box<Measurement<'a>>),
    Error { symptom: String, message: String },
    Diagnosis(Diagnosis<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TestRunStart<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) command_line: &'a str,
    pub(super) parameters: Parameters<'a>,
    pub(super) dut_info: DutInfo<'a>,
}

#[skip_serializing_none]
#[derive(Serialize)]
pub(super) struct Parameters<'a> {
    pub(super) run_id: &'a str,
    pub(super) plan: &'a str,
    pub(super) plan_hash: &'a str,
    /// What part of the plan was run.
    pub(super) subset: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DutInfo<'a> {
    pub(super) dut_info_id: &'a str,
    pub(super) name: &'a str,
    pub(super) hardware_infos: Vec<HardwareInfo<'a>>,
}

#[skip_serializing_none]
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HardwareInfo<'a> {
    pub(super) hardware_info_id: String,
    pub(super) name: String,
    /// The host that it is built in.
    pub(super) computer_system: &'a str,
    pub(super) part_type: &'a str,
    /// Rack and slot of a host, PCI address of a device.
    pub(super) location: Option<&'a str>,
    pub(super) manufacturer: Option<&'a str>,
    pub(super) part_number: Option<&'a str>,
    pub(super) serial_number: Option<&'a str>,
    /// Of the firmware.
    pub(super) version: Option<&'a str>,
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Measurement<'a> {
    pub(super) name: &'a str,
    pub(super) value: f64,
    pub(super) unit: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) validators: Vec<Validator<'a>>,
    pub(super) hardware_info_id: Option<String>,
    pub(super) metadata: Columns<'a>,
}

#[derive(Serialize)]
pub(super) struct Validator<'a> {
    pub(super) name: &'a str,
    #[serde(rename = "type")]
    pub(super) kind: ValidatorType,
    pub(super) value: f64,
}

/// Columns of the results table by their names there.
#[skip_serializing_none]
#[derive(Serialize)]
pub(super) struct Columns<'a> {
    pub(super) case_id: u64,
    pub(super) op: &'a str,
    pub(super) size_bytes: u64,
    pub(super) qps: u32,
    pub(super) ranks: u32,
    pub(super) transport: &'a str,
    pub(super) src_host: &'a str,
    pub(super) src_device: &'a str,
    pub(super) src_gpu: Option<u32>,
    pub(super) src_memory: &'a str,
    pub(super) dst_host: &'a str,
    pub(super) dst_device: &'a str,
    pub(super) dst_gpu: Option<u32>,
    pub(super) dst_memory: &'a str,
    pub(super) rail: u32,
    pub(super) ceiling: Option<f64>,
    pub(super) n: u32,
    pub(super) value_min: Option<f64>,
    pub(super) value_max: Option<f64>,
    pub(super) phase: &'a str,
    pub(super) env: &'a str,
    pub(super) error: Option<&'a str>,
}

#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Diagnosis<'a> {
    pub(super) verdict: String,
    #[serde(rename = "type")]
    pub(super) kind: DiagnosisType,
    pub(super) message: String,
    pub(super) hardware_info_id: Option<String>,
    pub(super) subcomponent: Option<Subcomponent<'a>>,
}

#[derive(Serialize)]
pub(super) struct Subcomponent<'a> {
    pub(super) name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum DiagnosisType {
    Pass,
    Fail,
    Unknown,
}

#[derive(Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum TestStatus {
    Complete,
    Error,
    Skip,
}

#[derive(Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum TestResult {
    NotApplicable,
    Pass,
    Fail,
}

#[derive(Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum ValidatorType {
    LessThanOrEqual,
    GreaterThanOrEqual,
}

#[derive(Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Severity {
    Info,
    Warning,
}
