//! Reads everything that a run is judged by, once the cluster is healed and quiet.

use std::time::{Duration, Instant};

use holdfast_client::Client;
use holdfast_ledger::Unit;

use super::cluster::{Cluster, tail_of};
use super::options::PATIENCE_SECONDS;
use crate::applied::{NodeApplied, read_applied_log};
use crate::evidence::{Evidence, FinalUsage, NodeAudit};
use crate::history::Operation;
use crate::workload::limit_names;

/// Audits, quotas, applied logs and messages of all nodes.
pub(super) async fn collect(
    cluster: &Cluster,
    client: &Client,
    tenants: &[String],
    operations: Vec<Operation>,
    mut mishaps: Vec<String>,
) -> Evidence {
    let audits = match equal_audits(cluster, client).await {
        Ok(audits) => audits,
        Err(problem) => {
            mishaps.push(problem);
            Vec::new()
        }
    };
    let mut usage = Vec::new();
    for tenant in tenants {
        match client.quota(tenant, None).await {
            Ok(quota) => usage.extend(
                quota.lines.iter().filter(|line| line.limit_id == limit_names::TENANT_TOKENS).map(|line| {
                    FinalUsage {
                        tenant: tenant.clone(),
                        limit: line.limit_id.clone(),
                        unit: Unit::Tokens.to_string(),
                        used: line.used,
                        held: line.held,
                    }
                }),
            ),
            Err(error) => mishaps.push(format!("the quota of {tenant} cannot be read: {error}")),
        }
    }
    let mut applied = Vec::new();
    for node in cluster.ids() {
        match read_applied_log(&cluster.applied_path(node)) {
            Ok(entries) => applied.push(NodeApplied { node, entries }),
            Err(error) => mishaps.push(error.to_string()),
        }
        let messages = tail_of(&cluster.log_path(node), usize::MAX);
        if let Some(line) = messages.lines().find(|line| line.contains("panicked at")) {
            mishaps.push(format!("node {node} panicked: {line}"));
        }
    }
    let leaders = cluster.leaders_seen().to_vec();
    Evidence { operations, applied, leaders, audits, usage, mishaps }
}

/// Audits of all nodes at one revision.
async fn equal_audits(cluster: &Cluster, client: &Client) -> Result<Vec<NodeAudit>, String> {
    let began = Instant::now();
    loop {
        let mut audits = Vec::new();
        let mut problem = None;
        for node in cluster.ids() {
            match client.at(cluster.endpoint(node)).with_stale_reads().audit().await {
                Ok(audit) => audits.push(NodeAudit {
                    node,
                    revision: audit.revision,
                    digest: audit.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
                    violations: audit
                        .violations
                        .iter()
                        .map(|violation| format!("{}: {}", violation.invariant, violation.text))
                        .collect(),
                }),
                Err(error) => problem = Some(format!("node {node} cannot be audited: {error}")),
            }
        }
        let is_equal = audits.iter().all(|audit| audit.revision == audits[0].revision);
        if problem.is_none() && is_equal {
            return Ok(audits);
        }
        if began.elapsed() > Duration::from_secs(PATIENCE_SECONDS) {
            let revisions: Vec<_> = audits.iter().map(|audit| (audit.node, audit.revision)).collect();
            return Err(problem.unwrap_or_else(|| format!("the nodes did not converge: {revisions:?}")));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
