//! The `Plans` service: plans and tenant records, by generation.

use std::sync::Arc;

use holdfast_ledger::Command;
use holdfast_ledger::command::{PublishPlan, RollBack, SetTenant};
use holdfast_ledger::ids::TenantId;
use holdfast_ledger::plan::{Plan, Route, Rule};
use holdfast_ledger::query::{PublishedPlan, TenantVersion};
use holdfast_proto::answers::encode_published;
use holdfast_proto::plans::decode_document;
use holdfast_proto::shadow::encode_rollout;
use holdfast_proto::{Failure, FieldError, v1};
use tonic::{Request, Response, Status};

use super::{Context, deadline, failures, fields};
use crate::calendar::bounds_wanted;

/// The service on one node.
pub(super) struct PlansService {
    pub(super) cx: Arc<Context>,
}

#[tonic::async_trait]
impl v1::plans_server::Plans for PlansService {
    async fn publish(
        &self,
        request: Request<v1::PublishRequest>,
    ) -> Result<Response<v1::PublishResponse>, Status> {
        self.cx.answer(self.propose_publish(request).await)
    }

    async fn get(
        &self,
        request: Request<v1::GetPlanRequest>,
    ) -> Result<Response<v1::GetPlanResponse>, Status> {
        self.cx.answer(self.read_plan(request).await)
    }

    async fn list(
        &self,
        request: Request<v1::ListPlansRequest>,
    ) -> Result<Response<v1::ListPlansResponse>, Status> {
        self.cx.answer(self.read_plans(request).await)
    }

    async fn diff(
        &self,
        request: Request<v1::DiffPlansRequest>,
    ) -> Result<Response<v1::DiffPlansResponse>, Status> {
        self.cx.answer(self.read_diff(request).await)
    }

    async fn rollback(
        &self,
        request: Request<v1::RollbackRequest>,
    ) -> Result<Response<v1::PublishResponse>, Status> {
        self.cx.answer(self.propose_rollback(request).await)
    }

    async fn status(
        &self,
        request: Request<v1::PlanStatusRequest>,
    ) -> Result<Response<v1::PlanStatusResponse>, Status> {
        self.cx.answer(self.read_status(request).await)
    }

    async fn set_tenant(
        &self,
        request: Request<v1::SetTenantRequest>,
    ) -> Result<Response<v1::PublishResponse>, Status> {
        self.cx.answer(self.propose_tenant(request).await)
    }

    async fn get_tenant(
        &self,
        request: Request<v1::GetTenantRequest>,
    ) -> Result<Response<v1::GetTenantResponse>, Status> {
        self.cx.answer(self.read_tenant(request).await)
    }

    async fn list_tenants(
        &self,
        request: Request<v1::ListTenantsRequest>,
    ) -> Result<Response<v1::ListTenantsResponse>, Status> {
        self.cx.answer(self.read_tenants(request).await)
    }

    async fn set_webhook(
        &self,
        request: Request<v1::SetWebhookRequest>,
    ) -> Result<Response<v1::SetWebhookResponse>, Status> {
        self.cx.answer(self.propose_webhook(request).await)
    }

    async fn list_webhooks(
        &self,
        request: Request<v1::ListWebhooksRequest>,
    ) -> Result<Response<v1::ListWebhooksResponse>, Status> {
        self.cx.answer(self.read_webhooks(request).await)
    }
}

impl PlansService {
    async fn propose_publish(
        &self,
        request: Request<v1::PublishRequest>,
    ) -> Result<v1::PublishResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let publish = PublishPlan::try_from(request.into_inner()).map_err(Failure::invalid)?;
        check_zones(&publish.plan)?;
        let (answer, revision) = self.cx.propose_one(Command::PublishPlan(publish), at).await?;
        encode_published(&answer, revision)
    }

    async fn propose_rollback(
        &self,
        request: Request<v1::RollbackRequest>,
    ) -> Result<v1::PublishResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let roll_back = RollBack::try_from(request.get_ref())?;
        let (answer, revision) = self.cx.propose_one(Command::RollBack(roll_back), at).await?;
        encode_published(&answer, revision)
    }

    async fn read_status(
        &self,
        request: Request<v1::PlanStatusRequest>,
    ) -> Result<v1::PlanStatusResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        self.cx.point(request.get_ref().stale, at).await?;
        let now_ms = self.cx.now_ms();
        Ok(self.cx.replica().read(|book| {
            let counts = |route: &Route| book.shadow_counts().find(|counts| counts.route == route.name);
            let routes = book.plan().map(|published| published.plan.routes.as_slice()).unwrap_or_default();
            let mut rollbacks: Vec<_> = book.drains(now_ms).iter().map(v1::RollbackStatus::from).collect();
            rollbacks.reverse();
            v1::PlanStatusResponse {
                revision: book.revision(),
                generation: book.generation(),
                routes: routes.iter().filter_map(|route| encode_rollout(route, counts(route))).collect(),
                rollbacks,
            }
        }))
    }

    async fn propose_tenant(
        &self,
        request: Request<v1::SetTenantRequest>,
    ) -> Result<v1::PublishResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let set = SetTenant::try_from(request.get_ref())?;
        let (answer, revision) = self.cx.propose_one(Command::SetTenant(set), at).await?;
        encode_published(&answer, revision)
    }

    async fn read_plan(&self, request: Request<v1::GetPlanRequest>) -> Result<v1::GetPlanResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let wire = request.into_inner();
        self.cx.point(wire.stale, at).await?;
        let (revision, plan) = self.published(wire.generation.unwrap_or(0));
        let plan = plan.map_err(|failure| failure.at_revision(revision))?;
        let document = plan.document.as_ref().to_owned();
        Ok(v1::GetPlanResponse { revision, head: Some(encode_head(&plan)), document })
    }

    async fn read_plans(
        &self,
        request: Request<v1::ListPlansRequest>,
    ) -> Result<v1::ListPlansResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        self.cx.point(request.get_ref().stale, at).await?;
        Ok(self.cx.replica().read(|book| {
            let mut plans: Vec<_> = book.plans().map(encode_head).collect();
            plans.reverse();
            v1::ListPlansResponse { revision: book.revision(), generation: book.generation(), plans }
        }))
    }

    async fn read_diff(
        &self,
        request: Request<v1::DiffPlansRequest>,
    ) -> Result<v1::DiffPlansResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let wire = request.into_inner();
        self.cx.point(wire.stale, at).await?;
        let from = self.side("from", wire.from)?;
        let to = self.side("to", wire.to)?;
        let losses = self.cx.replica().read(|book| {
            let is_in_force = book.plan().is_some_and(|published| published.plan == from);
            if is_in_force { book.losses(&to) } else { Vec::new() }
        });
        let changes = from.diff(&to).into_iter();
        let changes: Vec<_> = changes
            .map(|change| v1::PlanChange { path: change.path, before: change.before, after: change.after })
            .collect();
        let losses = losses.iter().map(v1::LimitLoss::from).collect();
        Ok(v1::DiffPlansResponse { same_content: from == to, changes, losses })
    }

    async fn read_tenant(
        &self,
        request: Request<v1::GetTenantRequest>,
    ) -> Result<v1::GetTenantResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let wire = request.into_inner();
        let tenant: TenantId = fields::name("tenant", &wire.tenant)?;
        self.cx.point(wire.stale, at).await?;
        self.cx.replica().read(|book| {
            let planned = || book.plan().and_then(|published| published.plan.tenants.get(&tenant));
            let set = book.tenant(&tenant).and_then(|version| version.record.as_deref());
            let record = set.or_else(planned).ok_or_else(|| {
                failures::not_found(format!("record of tenant {tenant}")).at_revision(book.revision())
            })?;
            let entry = v1::TenantEntry { tenant: wire.tenant.clone(), record: Some(record.into()) };
            Ok(v1::GetTenantResponse {
                revision: book.revision(),
                generation: book.generation(),
                tenant: Some(entry),
            })
        })
    }

    async fn read_tenants(
        &self,
        request: Request<v1::ListTenantsRequest>,
    ) -> Result<v1::ListTenantsResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        self.cx.point(request.get_ref().stale, at).await?;
        Ok(self.cx.replica().read(|book| {
            let entry = |version: &TenantVersion| {
                let record = version.record.as_deref()?;
                let tenant = version.tenant.as_str().to_owned();
                Some(v1::TenantEntry { tenant, record: Some(record.into()) })
            };
            v1::ListTenantsResponse {
                revision: book.revision(),
                generation: book.generation(),
                tenants: book.tenants().filter_map(entry).collect(),
            }
        }))
    }

    /// The plan of a generation (0: the one in force) as it stands here, with the revision.
    fn published(&self, generation: u64) -> (u64, Result<PublishedPlan, Failure>) {
        self.cx.replica().read(|book| {
            let found = match generation {
                0 => book.plan(),
                // A generation that has not come yet has no plan, though one is in force now.
                future if future > book.generation() => None,
                past => book.plan_at(past),
            };
            let missing = || match generation {
                0 => failures::not_found("plan in force"),
                _ => failures::not_found(format!("plan of generation {generation}")),
            };
            (book.revision(), found.cloned().ok_or_else(missing))
        })
    }

    fn side(&self, field: &str, side: Option<v1::PlanRef>) -> Result<Arc<Plan>, Failure> {
        match side.and_then(|side| side.plan) {
            None => Err(FieldError::missing(field).into()),
            Some(v1::plan_ref::Plan::Generation(generation)) => Ok(self.published(generation).1?.plan),
            Some(v1::plan_ref::Plan::Document(document)) => {
                decode_document(&format!("{field}.document"), &document)
                    .map(Arc::new)
                    .map_err(Failure::invalid)
            }
        }
    }
}

/// The ledger cannot know which time zones there are; the node that takes the plan in can.
fn check_zones(plan: &Plan) -> Result<(), Failure> {
    let mut violations = Vec::new();
    for limit in &plan.limits {
        if let Rule::Period { calendar, .. } = &limit.rule
            && let Err(error) = bounds_wanted(calendar, 0, None)
        {
            violations.push(FieldError::new(
                format!("document:limits.{}.zone", limit.id),
                format!("is wrong: {error}"),
            ));
        }
    }
    if violations.is_empty() { Ok(()) } else { Err(Failure::invalid(violations)) }
}

fn encode_head(plan: &PublishedPlan) -> v1::PlanHead {
    let PublishedPlan { generation, document: _, plan: _, published_at_ms, actor, roll_back } = plan;
    v1::PlanHead {
        generation: *generation,
        published_at_ms: *published_at_ms,
        actor: actor.as_str().to_owned(),
        restored: roll_back.map(|roll_back| roll_back.restored),
    }
}
