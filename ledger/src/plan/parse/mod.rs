//! Documents: YAML to plans and tenant records. The format, key by key, is in `docs/plan.md`.
//!
//! Reading never stops at the first problem, and never does more work than the document is long:
//! `yaml` bounds the text, `reader` collects problems with their lines, and each topic has its file.

use crate::plan::{Plan, PlanError, TenantRecord};

mod document;
mod limits;
mod matching;
mod reader;
mod records;
mod routes;
mod rules;
mod scalars;
mod suggest;
mod yaml;

use reader::{Place, Problems};

/// The schema word of a plan.
pub const PLAN_SCHEMA: &str = "admissionBudget.v1";

/// The schema word of a tenant's record.
pub const RECORD_SCHEMA: &str = "tenantRecord.v1";

/// A time zone that a document names. The ledger knows the syntax of zones only; whoever has zone data checks
/// that they exist and reports the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneUse {
    /// The zone, for example `Asia/Shanghai`.
    pub zone: String,
    /// Line in the document, from 1.
    pub line: usize,
    /// Where in the document, for example `limits.tenant-tokens.period.zone`.
    pub path: String,
}

impl ZoneUse {
    /// The problem that the zone does not exist, in the form of the parser's own.
    pub fn unknown(&self) -> PlanError {
        let problem = format!("is {:?}; the time zone data does not have it", self.zone);
        PlanError { line: self.line, path: self.path.clone(), problem }
    }
}

impl Plan {
    /// Reads an `admissionBudget.v1` document. Every problem of the document is reported at once, in the order of
    /// its lines; only a fault of YAML's own syntax ends the reading.
    pub fn parse(document: &str) -> Result<Plan, Vec<PlanError>> {
        Plan::parse_with_zones(document).map(|(plan, _)| plan)
    }

    /// As [`Plan::parse`], with the time zones that the document names, so that the caller can check that they exist.
    pub fn parse_with_zones(document: &str) -> Result<(Plan, Vec<ZoneUse>), Vec<PlanError>> {
        let root = yaml::load_document(document).map_err(|error| vec![error])?;
        let mut problems = Problems::default();
        let mut zones = Vec::new();
        let plan = document::read_plan(&Place::root(&root), &mut problems, &mut zones);
        if problems.is_empty() { Ok((plan, zones)) } else { Err(problems.into_errors()) }
    }

    /// What is wrong with a tenant's record under this plan: an unknown tier or limit, an override that the limit
    /// cannot take. The lines are 0, since a record in memory has none.
    pub fn check_record(&self, record: &TenantRecord) -> Vec<PlanError> {
        records::check_record(self, record)
    }
}

impl TenantRecord {
    /// Reads the document of one tenant's record for use under a plan. Every problem is reported at once, in the order of its lines.
    pub fn parse(document: &str, plan: &Plan) -> Result<TenantRecord, Vec<PlanError>> {
        let root = yaml::load_document(document).map_err(|error| vec![error])?;
        let mut problems = Problems::default();
        let known = records::Known::of_plan(plan);
        let record = records::read_record_document(&Place::root(&root), &mut problems, &known);
        if problems.is_empty() { Ok(record) } else { Err(problems.into_errors()) }
    }
}
