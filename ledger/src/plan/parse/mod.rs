//! Documents: YAML to plans and tenant records.

use crate::plan::{Plan, PlanError, TenantRecord};

impl Plan {
    /// Reads an `admissionBudget.v1` document. Every problem of the document is reported at once, in the order of its lines.
    pub fn parse(document: &str) -> Result<Plan, Vec<PlanError>> {
        let _ = document;
        Err(vec![PlanError { line: 1, path: "document".into(), problem: "is not read yet".into() }])
    }

    /// What is wrong with a tenant's record under this plan: an unknown tier or limit, an override that the limit
    /// cannot take. The lines are 0: a record has none.
    pub fn check_record(&self, record: &TenantRecord) -> Vec<PlanError> {
        let _ = record;
        Vec::new()
    }
}

impl TenantRecord {
    /// Reads the document of one tenant's record for use under a plan. Every problem is reported at once, in the order of its lines.
    pub fn parse(document: &str, plan: &Plan) -> Result<TenantRecord, Vec<PlanError>> {
        let _ = (document, plan);
        Err(vec![PlanError { line: 1, path: "document".into(), problem: "is not read yet".into() }])
    }
}
