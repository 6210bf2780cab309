//! Reads and operators' calls. Reads are linearizable unless the handle says otherwise
//! ([`Client::with_stale_reads`]); the answers are the wire's own messages.

use holdfast_proto::answers::{Decided, Done};
use holdfast_proto::ledger::answer::Receipt;
use holdfast_proto::ledger::command::{Freeze, ResolveUnknown, SetWebhook, Unfreeze};
use holdfast_proto::ledger::plan::TenantRecord;
use holdfast_proto::ledger::{Adjust, Command, ReservationId};
use holdfast_proto::limits::MESSAGE_BYTES_MAX;
use holdfast_proto::v1;
use holdfast_proto::v1::history_client::HistoryClient;
use holdfast_proto::v1::ledger_client::LedgerClient;
use holdfast_proto::v1::members_client::MembersClient;
use holdfast_proto::v1::operations_client::OperationsClient;
use holdfast_proto::v1::plans_client::PlansClient;
use holdfast_proto::v1::quotas_client::QuotasClient;
use holdfast_proto::{ErrorReason, Failure, FieldError};

use tonic::Streaming;

use crate::client::Client;
use crate::core::Kind;
use crate::error::{CallError, Unknown};

/// A closure that makes one call of a generated client, with our bound on messages.
macro_rules! call {
    ($client:ident, $method:ident) => {
        |channel, request| {
            let mut client = $client::new(channel)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX);
            async move { client.$method(request).await }
        }
    };
}

impl Client {
    /// What stands under an id. *Rejected* with NOT_FOUND if nothing does.
    pub async fn get(&self, id: ReservationId) -> Result<Decided, CallError> {
        let request = v1::GetReservationRequest { id: id.to_string(), stale: self.options.stale };
        let answer = self.unary(Kind::Read, request, call!(LedgerClient, get_reservation)).await?;
        let receipt = answer.receipt.ok_or_else(|| FieldError::missing("receipt"));
        match receipt.and_then(Receipt::try_from) {
            Ok(receipt) => {
                let done = Done::Receipt(Box::new(receipt));
                Ok(Decided { revision: answer.revision, digest: None, done })
            }
            // A read that cannot be understood has no effect, and no answer either.
            Err(error) => {
                Err(CallError::Unavailable(Failure::new(ErrorReason::Unsupported, error.to_string())))
            }
        }
    }

    /// The limits of a tenant, and those of a user of it if one is named, as they stand.
    pub async fn quota(&self, tenant: &str, user: Option<&str>) -> Result<v1::GetQuotaResponse, CallError> {
        let request = v1::GetQuotaRequest {
            tenant: tenant.to_owned(),
            user: user.map(ToOwned::to_owned),
            stale: self.options.stale,
            shadow: false,
        };
        self.unary(Kind::Read, request, call!(QuotasClient, get_quota)).await
    }

    /// The same of the shadow lane, as far as anything was booked there.
    pub async fn quota_in_shadow(
        &self,
        tenant: &str,
        user: Option<&str>,
    ) -> Result<v1::GetQuotaResponse, CallError> {
        let request = v1::GetQuotaRequest {
            tenant: tenant.to_owned(),
            user: user.map(ToOwned::to_owned),
            stale: self.options.stale,
            shadow: true,
        };
        self.unary(Kind::Read, request, call!(QuotasClient, get_quota)).await
    }

    /// What was used in accounting epochs that have ended: of a tenant, and of a user of it if one is named.
    /// A request that asks for it or a client [`Client::with_stale_reads`] is answered without the quorum.
    pub async fn statements(
        &self,
        mut request: v1::ListStatementsRequest,
    ) -> Result<v1::ListStatementsResponse, CallError> {
        request.stale |= self.options.stale;
        self.unary(Kind::Read, request, call!(QuotasClient, list_statements)).await
    }

    pub(crate) async fn watch_events(
        &self,
        request: v1::WatchEventsRequest,
    ) -> Result<Streaming<v1::WatchEventsResponse>, CallError> {
        self.unary(Kind::Read, request, call!(QuotasClient, watch_events)).await
    }

    /// Publishes a plan document; `force`: even if that destroys what is held on limits or owed to them. Not
    /// repeated once it may have been done: an *unknown* publish is looked up by the plan in force.
    pub async fn publish_plan(
        &self,
        document: &str,
        expected_generation: Option<u64>,
        force: bool,
        actor: &str,
    ) -> Result<v1::PublishResponse, CallError> {
        let request = v1::PublishRequest {
            expected_generation,
            document: document.to_owned(),
            actor: actor.to_owned(),
            force,
        };
        self.unary(Kind::Once, request, call!(PlansClient, publish)).await
    }

    /// The plan in force, or that of a generation.
    pub async fn plan(&self, generation: Option<u64>) -> Result<v1::GetPlanResponse, CallError> {
        let request = v1::GetPlanRequest { generation, stale: self.options.stale };
        self.unary(Kind::Read, request, call!(PlansClient, get)).await
    }

    /// Every plan that is kept, newest first.
    pub async fn plans(&self) -> Result<v1::ListPlansResponse, CallError> {
        let request = v1::ListPlansRequest { stale: self.options.stale };
        self.unary(Kind::Read, request, call!(PlansClient, list)).await
    }

    /// What differs between two plans.
    pub async fn diff_plans(
        &self,
        from: v1::PlanRef,
        to: v1::PlanRef,
    ) -> Result<v1::DiffPlansResponse, CallError> {
        let request = v1::DiffPlansRequest { from: Some(from), to: Some(to), stale: self.options.stale };
        self.unary(Kind::Read, request, call!(PlansClient, diff)).await
    }

    /// Publishes the content of an earlier generation again. Not repeated once it may have been done: an
    /// *unknown* roll-back is looked up by the plan in force.
    pub async fn roll_back_plan(
        &self,
        to: u64,
        expected_generation: Option<u64>,
        actor: &str,
    ) -> Result<v1::PublishResponse, CallError> {
        let request = v1::RollbackRequest { generation: to, expected_generation, actor: actor.to_owned() };
        self.unary(Kind::Once, request, call!(PlansClient, rollback)).await
    }

    /// How the plan in force is rolled out, and how far rolled-back generations have drained.
    pub async fn plan_status(&self) -> Result<v1::PlanStatusResponse, CallError> {
        let request = v1::PlanStatusRequest { stale: self.options.stale };
        self.unary(Kind::Read, request, call!(PlansClient, status)).await
    }

    /// Sets or removes the webhook of a tenant. Saying it again changes nothing.
    pub async fn set_webhook(&self, set: &SetWebhook) -> Result<v1::SetWebhookResponse, CallError> {
        let request = v1::SetWebhookRequest::from(set);
        self.unary(Kind::Once, request, call!(PlansClient, set_webhook)).await
    }

    /// The webhook of a tenant, or those of all.
    pub async fn webhooks(&self, tenant: Option<&str>) -> Result<v1::ListWebhooksResponse, CallError> {
        let tenant = tenant.map(str::to_owned);
        let request = v1::ListWebhooksRequest { tenant, stale: self.options.stale };
        self.unary(Kind::Read, request, call!(PlansClient, list_webhooks)).await
    }

    /// Sets a tenant's whole record, or removes it. Not repeated once it may have been done.
    pub async fn set_tenant(
        &self,
        tenant: &str,
        record: Option<&TenantRecord>,
        expected_generation: Option<u64>,
        actor: &str,
    ) -> Result<v1::PublishResponse, CallError> {
        let request = v1::SetTenantRequest {
            tenant: tenant.to_owned(),
            record: record.map(v1::TenantRecord::from),
            expected_generation,
            actor: actor.to_owned(),
        };
        self.unary(Kind::Once, request, call!(PlansClient, set_tenant)).await
    }

    /// A tenant's record.
    pub async fn tenant(&self, tenant: &str) -> Result<v1::GetTenantResponse, CallError> {
        let request = v1::GetTenantRequest { tenant: tenant.to_owned(), stale: self.options.stale };
        self.unary(Kind::Read, request, call!(PlansClient, get_tenant)).await
    }

    /// Every tenant that has a record.
    pub async fn tenants(&self) -> Result<v1::ListTenantsResponse, CallError> {
        let request = v1::ListTenantsRequest { stale: self.options.stale };
        self.unary(Kind::Read, request, call!(PlansClient, list_tenants)).await
    }

    /// Checks the account equation over a member's whole book.
    pub async fn audit(&self) -> Result<v1::AuditResponse, CallError> {
        let request = v1::AuditRequest { stale: self.options.stale };
        self.unary(Kind::Read, request, call!(OperationsClient, audit)).await
    }

    /// A page of the reservations whose usage nobody knows, oldest first; `after` is the place of the last
    /// entry of the page before.
    pub async fn unknowns(
        &self,
        tenant: Option<&str>,
        after: Option<v1::UnknownPlace>,
    ) -> Result<v1::ListUnknownResponse, CallError> {
        let tenant = tenant.map(ToOwned::to_owned);
        let request = v1::ListUnknownRequest { tenant, after, entries_max: 0, stale: self.options.stale };
        self.unary(Kind::Read, request, call!(OperationsClient, list_unknown)).await
    }

    /// Ends a reservation whose usage nobody knows by an operator's word. The same word again gives the same receipt.
    pub async fn resolve_unknown(&self, resolve: &ResolveUnknown) -> Result<Decided, CallError> {
        let request = v1::ResolveUnknownRequest::from(resolve);
        let answer = self.unary(Kind::Repeatable, request, call!(OperationsClient, resolve_unknown)).await?;
        // It was done; only its answer cannot be understood.
        Decided::try_from(answer).map_err(|error| {
            let command = Some(Command::ResolveUnknown(resolve.clone()));
            CallError::Unknown(Box::new(Unknown { command, attempts: 1, why: error.to_string() }))
        })
    }

    /// Stops admissions for a subject and route. Not repeated once it may have been done.
    pub async fn freeze(&self, freeze: &Freeze) -> Result<v1::FreezeResponse, CallError> {
        let request = v1::FreezeRequest::from(freeze);
        self.unary(Kind::Once, request, call!(OperationsClient, freeze)).await
    }

    /// Lifts a freeze. Not repeated once it may have been done.
    pub async fn unfreeze(&self, unfreeze: &Unfreeze) -> Result<v1::UnfreezeResponse, CallError> {
        let request = v1::UnfreezeRequest::from(unfreeze);
        self.unary(Kind::Once, request, call!(OperationsClient, unfreeze)).await
    }

    /// Books an adjustment. Repeating it books nothing twice: the same id gives the same receipt.
    pub async fn adjust(&self, adjust: &Adjust) -> Result<v1::AdjustResponse, CallError> {
        let request = v1::AdjustRequest::from(adjust);
        self.unary(Kind::Repeatable, request, call!(OperationsClient, adjust)).await
    }

    /// Every member as it stands, or only the one that is asked.
    pub async fn status(&self, only_this: bool) -> Result<v1::StatusResponse, CallError> {
        let request = v1::StatusRequest { only_this };
        self.unary(Kind::Read, request, call!(MembersClient, status)).await
    }

    /// The members and who leads, from what the asked member knows. Needs no leader.
    pub async fn members(&self) -> Result<v1::ListMembersResponse, CallError> {
        let list = self.unary(Kind::Read, v1::ListMembersRequest {}, call!(MembersClient, list)).await?;
        if self.pinned().is_none() {
            self.core().router.learn(list.clone());
        }
        Ok(list)
    }

    /// Hands leadership to a member, or to whichever is furthest (0). Not repeated once it may have been done.
    pub async fn transfer_leader(&self, to: u64) -> Result<v1::TransferLeaderResponse, CallError> {
        let request = v1::TransferLeaderRequest { to };
        self.unary(Kind::Once, request, call!(MembersClient, transfer_leader)).await
    }

    /// Entries of a member's history index. Usually asked of a certain member ([`Client::at`]).
    pub async fn history(
        &self,
        request: v1::ReadHistoryRequest,
    ) -> Result<v1::ReadHistoryResponse, CallError> {
        self.unary(Kind::Read, request, call!(HistoryClient, read)).await
    }
}
