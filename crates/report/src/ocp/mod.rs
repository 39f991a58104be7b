//! A run as output of the [OCP Test & Validation specification](https://github.com/opencomputeproject/ocp-diag-core),
//! version 2.0: JSON lines. `docs/formats.md` has what becomes what.
//!
//! A limit of the plan applies to the median of the repeats, and a validator of a series to each element: values are
//! single measurements with the spread in their metadata.

mod artifact;
mod hardware;

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use foldhash::HashMap;
use jiff::Timestamp;
use railgauge_analysis::{
    case::{CaseResult, State},
    compare::interleaved,
    journal::{Journal, JournalEnd},
    results::further,
    row::Row,
    rows::{Maker, judged_rows},
    status::Status,
    verdict::{ANSWERS, Applied, Component, Judged, Measured, PREFLIGHT, RUN, Verdict, Verdicts, applied, verdicts},
    words::size,
};
use railgauge_wire::Metric;
use serde::Serialize;

use self::{
    artifact::{
        Columns, Content, Diagnosis, DiagnosisType, DutInfo, Line, Measurement, OfRun, OfStep, Parameters, Severity,
        Subcomponent, TestResult, TestRunStart, TestStatus, VERSION, Validator, ValidatorType,
    },
    hardware::Hardware,
};
use super::{
    error::ReportError,
    steps::{Step, steps},
    write::{CASES, results_of},
};

/// A judged run.
pub struct Run<'j> {
    journal: &'j Journal,
    results: Vec<CaseResult<'j>>,
    further: Vec<CaseResult<'j>>,
    limits: HashMap<(u64, Metric), Vec<Applied>>,
    verdicts: Verdicts,
    begin: Timestamp,
    end: Timestamp,
}

impl<'j> Run<'j> {
    /// `path` is for errors.
    ///
    /// # Errors
    /// The journal contradicts itself.
    pub fn of(journal: &'j Journal, path: &Path) -> Result<Self, ReportError> {
        let results = results_of(journal, path)?;
        let rows = judged_rows(journal, &results);
        let turns = interleaved(journal, &results).map_err(ReportError::drawing("the comparison of tests in turn"))?;
        let time = |text: &str| text.parse().unwrap_or_default();
        Ok(Self {
            verdicts: verdicts(journal, &results, &rows, turns),
            limits: applied(journal, &results, &rows),
            further: further(journal),
            begin: time(&journal.time.0),
            end: time(&journal.time.1),
            journal,
            results,
        })
    }

    pub const fn status(&self) -> Status {
        self.verdicts.status
    }

    /// The same records give the same bytes.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let (hardware, infos) = Hardware::of(self.journal);
        let mut lines = Lines { out: BufWriter::new(out), next: 0 };
        lines.add(self.begin, VERSION)?;
        let Verdicts { run_id, plan, subset, .. } = &self.verdicts;
        let start = TestRunStart {
            name: "railgauge",
            version: &self.journal.version,
            command_line: "railgauge run plan.toml",
            parameters: Parameters {
                run_id,
                plan,
                plan_hash: &self.journal.plan_hash,
                subset: subset.as_ref().map(|subset| subset.words()),
            },
            dut_info: DutInfo { dut_info_id: "0", name: plan, hardware_infos: infos },
        };
        lines.of_run(self.begin, OfRun::TestRunStart(Box::new(start)))?;
        let makers = [&self.results, &self.further].map(|cases| (cases.as_slice(), Maker::new(self.journal, cases)));
        for (at, step) in steps(self.journal, &self.verdicts).iter().enumerate() {
            let id = at.to_string();
            StepWriter { run: self, hardware: &hardware, step, id: &id }.write(&mut lines, &makers)?;
        }
        for failure in &self.verdicts.lost {
            lines.of_run(self.end, OfRun::Error { symptom: word(&failure.kind), message: failure.to_string() })?;
        }
        lines.of_run(self.end, OfRun::Log { severity: Severity::Info, message: self.verdicts.sentence.clone() })?;
        for untested in &self.verdicts.untested {
            let message = format!("not tested: {untested}");
            lines.of_run(self.end, OfRun::Log { severity: Severity::Warning, message })?;
        }
        let (status, result) = self.ending();
        lines.of_run(self.end, OfRun::TestRunEnd { status, result })?;
        lines.out.flush()
    }

    /// Only these combinations are valid.
    fn ending(&self) -> (TestStatus, TestResult) {
        match (&self.journal.end, self.verdicts.status) {
            (JournalEnd::Finished, Status::Pass) => (TestStatus::Complete, TestResult::Pass),
            (JournalEnd::Finished, Status::Fail) => (TestStatus::Complete, TestResult::Fail),
            (JournalEnd::Interrupted, _) | (_, Status::NotRun) => (TestStatus::Skip, TestResult::NotApplicable),
            _ => (TestStatus::Error, TestResult::NotApplicable),
        }
    }
}

struct Lines<W: Write> {
    out: BufWriter<W>,
    next: u64,
}

impl<W: Write> Lines<W> {
    fn add(&mut self, time: Timestamp, content: Content<'_>) -> io::Result<()> {
        let line = Line { sequence_number: self.next, timestamp: time.to_string(), content };
        serde_json::to_writer(&mut self.out, &line)?;
        self.next += 1;
        self.out.write_all(b"\n")
    }

    fn of_run(&mut self, time: Timestamp, of: OfRun<'_>) -> io::Result<()> {
        self.add(time, Content::TestRunArtifact(of))
    }
}

struct StepWriter<'r> {
    run: &'r Run<'r>,
    hardware: &'r Hardware,
    step: &'r Step<'r>,
    id: &'r str,
}

impl StepWriter<'_> {
    /// Nothing for an empty step that is not a test.
    fn write(&self, lines: &mut Lines<impl Write>, makers: &[(&[CaseResult<'_>], Maker<'_>)]) -> io::Result<()> {
        let Self { run, step, .. } = self;
        let measured = run.verdicts.components.iter().filter(|of| has(step, of));
        let components = measured.flat_map(|of| of.components.iter().map(move |one| (of, one)));
        // That a host answers does not show that it is good.
        let components = components.filter(|(of, one)| of.test != ANSWERS || one.state != Some(Judged::Good));
        let components: Vec<(&Measured, &Component)> = components.collect();
        if !step.is_test && step.verdicts.is_empty() && components.is_empty() {
            return Ok(());
        }
        let cases = || run.results.iter().filter(|result| self.is_of(result));
        let begin = cases().filter_map(CaseResult::started_at).min();
        self.add(lines, begin.unwrap_or(run.begin), OfStep::TestStepStart { name: step.name })?;
        for (results, maker) in makers {
            let alike = results.chunk_by(|a, b| a.case.test == b.case.test).filter(|some| self.is_of(&some[0]));
            for some in alike.flat_map(|some| some.chunks(CASES)) {
                let rows = maker.rows(some, |_, _| true);
                let mut rows = rows.as_slice();
                for result in some {
                    let own = rows.iter().take_while(|row| row.case == result.case.id).count();
                    let (own, rest) = rows.split_at(own);
                    self.case(lines, result, own)?;
                    rows = rest;
                }
            }
        }
        for verdict in &step.verdicts {
            self.add(lines, run.end, OfStep::Diagnosis(of_verdict(verdict)))?;
        }
        for (of, component) in components {
            self.add(lines, run.end, OfStep::Diagnosis(self.of_component(of, component)))?;
        }
        let is_judged = step.is_test || !step.verdicts.is_empty();
        let status = if is_judged && step.verdicts.iter().all(|one| one.status == Status::NotRun) {
            TestStatus::Skip
        } else if cases().any(is_lacking) {
            TestStatus::Error
        } else {
            TestStatus::Complete
        };
        self.add(lines, run.end, OfStep::TestStepEnd { status })
    }

    fn is_of(&self, result: &CaseResult<'_>) -> bool {
        self.step.is_test && *result.case.test == *self.step.name
    }

    fn add(&self, lines: &mut Lines<impl Write>, time: Timestamp, of: OfStep<'_>) -> io::Result<()> {
        lines.add(time, Content::TestStepArtifact { test_step_id: self.id, of })
    }

    fn case(&self, lines: &mut Lines<impl Write>, result: &CaseResult<'_>, rows: &[Row]) -> io::Result<()> {
        let time = result.started_at().unwrap_or(self.run.end);
        for (row, value) in rows.iter().filter_map(|row| Some((row, row.value.filter(|value| value.is_finite())?))) {
            self.add(lines, time, OfStep::Measurement(Box::new(self.measurement(row, value))))?;
        }
        let (case, link) = (result.case, result.link_name());
        let message = || {
            let (op, size) = (case.cell.op.word(), size(case.cell.size));
            format!("case {}: {op} {size}: {link}: {}", case.id, result.error().unwrap_or_default())
        };
        if result.state == State::Wrong {
            let (verdict, kind) = (hyphened(result.state.word()), DiagnosisType::Fail);
            let subcomponent = Some(Subcomponent { name: &link });
            let found = Diagnosis { verdict, kind, message: message(), hardware_info_id: None, subcomponent };
            self.add(lines, time, OfStep::Diagnosis(found))?;
        } else if is_lacking(result) {
            let symptom = result.failure.map_or_else(|| hyphened(result.state.word()), |failure| word(&failure.kind));
            self.add(lines, time, OfStep::Error { symptom, message: message() })?;
        }
        Ok(())
    }

    fn measurement<'a>(&'a self, row: &'a Row, value: f64) -> Measurement<'a> {
        let limits = self.run.limits.get(&(row.case, row.metric)).into_iter().flatten();
        let validator = |limit: &'a Applied| Validator {
            name: &limit.demand,
            kind: if limit.at_least { ValidatorType::GreaterThanOrEqual } else { ValidatorType::LessThanOrEqual },
            value: limit.limit,
        };
        Measurement {
            name: row.metric.word(),
            value,
            unit: row.unit(),
            validators: limits.map(validator).collect(),
            // A collective has no first device.
            hardware_info_id: (row.ranks <= 2).then(|| self.hardware.id(&row.src_host, &row.src_device)).flatten(),
            metadata: Columns {
                case_id: row.case,
                op: &row.op,
                size_bytes: row.size_bytes.0,
                qps: row.qps,
                ranks: row.ranks,
                transport: &row.transport,
                src_host: &row.src_host,
                src_device: &row.src_device,
                src_gpu: row.src_gpu,
                src_memory: &row.src_memory,
                dst_host: &row.dst_host,
                dst_device: &row.dst_device,
                dst_gpu: row.dst_gpu,
                dst_memory: &row.dst_memory,
                rail: row.rail,
                ceiling: row.ceiling,
                n: row.n,
                value_min: row.value_min.get(),
                value_max: row.value_max.get(),
                phase: row.phase.word(),
                env: &row.env,
                error: row.error.as_deref(),
            },
        }
    }

    fn of_component<'a>(&self, measured: &Measured, component: &'a Component) -> Diagnosis<'a> {
        let (kind, state) = match component.state {
            Some(Judged::Good) => (DiagnosisType::Pass, "good"),
            Some(Judged::Faulty) => (DiagnosisType::Fail, "faulty"),
            Some(Judged::Undecided) => (DiagnosisType::Unknown, "undecided"),
            None => (DiagnosisType::Unknown, "unknown"),
        };
        let device = component.device.as_deref().unwrap_or_default();
        let hardware_info_id = match component.hosts.as_slice() {
            [host] => self.hardware.id(host, device),
            _ => None,
        };
        Diagnosis {
            verdict: hyphened(&format!("{}-{state}", component.kind)),
            kind,
            message: std::iter::once(&measured.test)
                .chain(&component.why)
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(": "),
            hardware_info_id,
            subcomponent: Some(Subcomponent { name: &component.name }),
        }
    }
}

/// Whether a case has no value in its test's metric.
fn is_lacking(result: &CaseResult<'_>) -> bool {
    matches!(result.state, State::NoValue | State::NotRun | State::Failed)
}

/// Whether a step has these components.
fn has(step: &Step<'_>, measured: &Measured) -> bool {
    // Only a test has a metric.
    if step.is_test || measured.metric.is_some() {
        return step.is_test && measured.metric.is_some() && measured.test == step.name;
    }
    match step.name {
        RUN => measured.test == ANSWERS,
        PREFLIGHT => measured.test.starts_with(PREFLIGHT),
        name => measured.test == name,
    }
}

fn of_verdict(verdict: &Verdict) -> Diagnosis<'_> {
    let is_waived = verdict.waived && verdict.status != Status::Pass;
    let (kind, why) = match verdict.status {
        // The plan accepts it.
        _ if is_waived => (DiagnosisType::Unknown, "waived".to_owned()),
        status => {
            let kind = match status {
                Status::Pass => DiagnosisType::Pass,
                Status::Fail => DiagnosisType::Fail,
                Status::Inconclusive | Status::NotRun => DiagnosisType::Unknown,
            };
            let id = verdict.reason.iter().next().map(|reason| word(&reason.id));
            (kind, id.unwrap_or_else(|| status.word().to_owned()))
        }
    };
    let worst = verdict.worst.as_ref().filter(|_| verdict.status == Status::Fail);
    Diagnosis {
        verdict: format!("{}-{why}", word(&verdict.kind)),
        kind,
        message: format!("{}: {}", verdict.demanded(), verdict.reason),
        // Either end of a link may be the cause.
        hardware_info_id: None,
        subcomponent: worst.map(|worst| Subcomponent { name: &worst.link }),
    }
}

/// How serde writes a variant.
fn word(of: &impl Serialize) -> String {
    serde_json::to_value(of).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn hyphened(words: &str) -> String {
    words.to_lowercase().replace(' ', "-")
}
