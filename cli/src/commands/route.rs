//! `holdfast route`: stop and resume admissions for a subject on a route.

use holdfast_ledger::command::{Freeze, Unfreeze};
use holdfast_ledger::ids::{ActorName, ModelName, RegionName, RouteName, TenantId, UserId};
use holdfast_ledger::record::FreezeScope;
use serde_json::{Map, Value};

use super::plan::actor;
use crate::calls;
use crate::failure::{Failure, Outcome};
use crate::output::put_u64;
use crate::settings::Settings;

/// What can be done with a route.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Admit nothing for a tenant or a user on it, until it is unfrozen; what runs goes on
    Freeze(Subject),
    /// Lift a freeze, of a breach or of an operator
    Unfreeze(Subject),
}

/// Whom it is about, and why.
#[derive(Debug, clap::Args)]
pub struct Subject {
    /// The plan's route
    route: RouteName,
    /// The tenant
    #[arg(long)]
    tenant: TenantId,
    /// The user [default: the whole tenant]
    #[arg(long)]
    user: Option<UserId>,
    /// Only this model [default: whatever the model]
    #[arg(long)]
    model: Option<ModelName>,
    /// Only this region [default: wherever it is served]
    #[arg(long)]
    region: Option<RegionName>,
    /// Why
    #[arg(long)]
    reason: String,
}

impl Subject {
    /// What is frozen, and why.
    fn split(self) -> (FreezeScope, String) {
        let Subject { route, tenant, user, model, region, reason } = self;
        (FreezeScope { tenant, user, route, model, region }, reason)
    }
}

/// Does it.
pub async fn run(settings: &Settings, command: Command) -> Outcome {
    let client = calls::client(settings)?;
    let actor = ActorName::new(actor()).map_err(|error| Failure::usage(format!("the actor {error}")))?;
    match command {
        Command::Freeze(subject) => {
            let (scope, reason) = subject.split();
            let freeze = Freeze { scope, actor, reason };
            let answer =
                client.freeze(&freeze).await.map_err(|error| calls::failure("route freeze", error))?;
            show(settings, answer.revision, answer.changed, ("frozen", "it was frozen already"))
        }
        Command::Unfreeze(subject) => {
            let (scope, reason) = subject.split();
            let unfreeze = Unfreeze { scope, actor, reason };
            let answer = client.unfreeze(&unfreeze).await;
            let answer = answer.map_err(|error| calls::failure("route unfreeze", error))?;
            show(settings, answer.revision, answer.changed, ("unfrozen", "it was not frozen"))
        }
    }
}

fn show(settings: &Settings, revision: u64, changed: bool, (done, was): (&str, &str)) -> Outcome {
    let mut object = Map::new();
    object.insert("changed".into(), changed.into());
    put_u64(&mut object, "revision", revision);
    settings.output.show(&Value::from(object), || format!("{}\n", if changed { done } else { was }))
}
