//! `holdfast adjust`: what operators book by hand.

use std::sync::Arc;

use holdfast_ledger::ids::{LimitId, ModelName, RegionName, RouteName, TenantId, UserId};
use holdfast_ledger::record::{Lane, LineageKey};
use holdfast_ledger::{Adjust, Adjustment, AdjustmentId};

use super::plan::actor;
use crate::calls;
use crate::failure::{Failure, Outcome};
use crate::parse;
use crate::settings::Settings;
use crate::show::{adjustment_document, adjustment_text, at_ms};

/// Options of `adjust`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The limit
    limit: LimitId,
    /// The tenant, for limits of the tenant and user levels
    #[arg(long)]
    tenant: Option<TenantId>,
    /// The user, for limits of the user level
    #[arg(long)]
    user: Option<UserId>,
    /// The plan's route, if the limit is keyed by it
    #[arg(long)]
    route: Option<RouteName>,
    /// The model, if the limit is keyed by it
    #[arg(long)]
    model: Option<ModelName>,
    /// The region, if the limit is keyed by it
    #[arg(long)]
    region: Option<RegionName>,
    /// The accounting epoch that is meant, by its start; refused unless it is the running one
    #[arg(long, value_name = "INSTANT", value_parser = parse::instant_ms)]
    epoch: Option<u64>,
    /// What to book
    #[command(flatten)]
    what: What,
    /// How long the boost lasts from now
    #[arg(long = "for", requires = "boost", conflicts_with = "until", value_name = "DURATION", value_parser = parse::duration_ms)]
    lasts: Option<u64>,
    /// When the boost ends
    #[arg(long, requires = "boost", value_name = "INSTANT", value_parser = parse::instant_ms)]
    until: Option<u64>,
    /// Why; kept with the adjustment
    #[arg(long)]
    reason: String,
    /// The adjustment's id, a ULID; give the same again to ask for the same receipt [default: a new one]
    #[arg(long)]
    id: Option<AdjustmentId>,
}

/// One of these.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct What {
    /// More capacity in the running epoch; repays debt first
    #[arg(long, value_name = "AMOUNT", value_parser = parse::whole_number)]
    grant: Option<u64>,
    /// Less capacity in the running epoch; never makes debt
    #[arg(long, value_name = "AMOUNT", value_parser = parse::whole_number)]
    take: Option<u64>,
    /// More usage, as if it had been settled
    #[arg(long, value_name = "AMOUNT", value_parser = parse::whole_number)]
    charge: Option<u64>,
    /// Less usage than was booked in the running epoch
    #[arg(long, value_name = "AMOUNT", value_parser = parse::whole_number)]
    correct: Option<u64>,
    /// Make the usage of the running epoch this much
    #[arg(long, value_name = "AMOUNT", value_parser = parse::whole_number)]
    set_used: Option<u64>,
    /// Let the limit give this much more for a while
    #[arg(long, value_name = "AMOUNT", value_parser = parse::whole_number)]
    boost: Option<u64>,
    /// End the boost that this adjustment began
    #[arg(long, value_name = "ID")]
    end_boost: Option<AdjustmentId>,
}

/// Books it and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let id = args.id.unwrap_or_else(|| AdjustmentId::from_parts(at_ms(), rand::random()));
    let what = what(&args)?;
    let actor = actor().parse().map_err(|error| Failure::usage(format!("the actor {error}")))?;
    let lineage = LineageKey {
        limit: args.limit,
        tenant: args.tenant,
        user: args.user,
        route: args.route,
        model: args.model,
        region: args.region,
        lane: Lane::Enforced,
    };
    let (lineage, reason) = (Arc::new(lineage), args.reason);
    let adjust = Adjust { id, lineage, epoch_start_ms: args.epoch, what, actor, reason };
    let client = calls::client(settings)?;
    let answer = client.adjust(&adjust).await.map_err(|error| {
        // Only under the same id is asking again no second adjustment.
        let failure = calls::failure(&format!("adjust {id}"), error);
        if failure.kind == crate::failure::Kind::Unknown {
            return failure.advise(format!("It may be booked: repeat it with --id {id}."));
        }
        failure
    })?;
    let adjustment = answer.adjustment.ok_or_else(|| Failure::failed("the answer has no receipt"))?;
    settings.output.show(&adjustment_document(answer.revision, &adjustment), || adjustment_text(&adjustment))
}

fn what(args: &Args) -> Outcome<Adjustment> {
    let until_ms = args.until.or_else(|| args.lasts.map(|ms| at_ms().saturating_add(ms)));
    let What { grant, take, charge, correct, set_used, boost, end_boost } = &args.what;
    if boost.is_some() && until_ms.is_none() {
        return Err(Failure::usage("a boost needs an end: --for DURATION or --until INSTANT"));
    }
    let boost = boost.zip(until_ms).map(|(amount, until_ms)| Adjustment::Boost { amount, until_ms });
    grant
        .map(Adjustment::Grant)
        .or(take.map(Adjustment::Take))
        .or(charge.map(Adjustment::Charge))
        .or(correct.map(Adjustment::Correct))
        .or(set_used.map(Adjustment::SetUsed))
        .or(boost)
        .or(end_boost.map(|boost| Adjustment::EndBoost { boost }))
        .ok_or_else(|| Failure::usage("adjust what?"))
}
