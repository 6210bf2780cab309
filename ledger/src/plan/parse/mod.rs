//! Documents: YAML to plans and tenant records. The format, key by key, is in `docs/plan.md`.
//!
//! Reading never stops at the first problem, and never does more work than the document is long:
//! `yaml` bounds the text, `reader` collects problems with their lines, and each topic has its file.

use crate::plan::{Plan, PlanError, TenantRecord};

mod document;
mod door;
mod limits;
mod matching;
mod prices;
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

/// Whether a time zone exists. The ledger knows the syntax of zones only; whoever has zone data tells the rest.
type ZoneData<'a> = dyn Fn(&str) -> bool + 'a;

impl Plan {
    /// Reads an `admissionBudget.v1` document. Every problem of the document is reported at once, in the order of
    /// its lines; only a fault of YAML's own syntax ends the reading.
    pub fn parse(document: &str) -> Result<Plan, Vec<PlanError>> {
        Plan::parse_with_zones(document, &|_| true)
    }

    /// As [`Plan::parse`], for a caller with time zone data: a zone that does not exist by it is a problem among the
    /// others.
    pub fn parse_with_zones(document: &str, exists: &dyn Fn(&str) -> bool) -> Result<Plan, Vec<PlanError>> {
        let root = yaml::load_document(document).map_err(|error| vec![error])?;
        let mut problems = Problems::default();
        let plan = document::read_plan(&Place::root(&root), &mut problems, exists);
        if problems.is_empty() { Ok(plan) } else { Err(problems.into_errors()) }
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
