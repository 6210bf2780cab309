//! `holdfast events`: what happened, in the order of its numbers.

use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use crate::calls;
use crate::failure::Outcome;
use crate::output::put_u64;
use crate::settings::Settings;
use crate::show::{instant, tier, unit};

/// Options of `events`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The first number wanted [default: the first that is kept]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    from: u64,
    /// Go on as they happen
    #[arg(long)]
    follow: bool,
    /// Only what is about this tenant
    #[arg(long)]
    tenant: Option<String>,
}

/// Shows them, one a line; as JSON one document a line.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let client = calls::client(settings)?;
    let mut events = client.events(args.from, args.follow, args.tenant.as_deref());
    loop {
        match events.next().await.map_err(|error| calls::failure("events", error))? {
            None => return Ok(()),
            Some(found) => {
                for event in &found {
                    if !settings.output.show_one(&document(event), || line(event))? {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn document(event: &v1::Event) -> Value {
    let mut object = Map::new();
    put_u64(&mut object, "sequence", event.sequence);
    put_u64(&mut object, "revision", event.revision);
    object.insert("at".into(), instant(event.at_ms).into());
    object.insert("kind".into(), event.kind.clone().into());
    let names = [
        ("tenant", &event.tenant),
        ("user", &event.user),
        ("limit", &event.limit),
        ("route", &event.route),
        ("model", &event.model),
        ("region", &event.region),
        ("reservation", &event.reservation),
        ("adjustment", &event.adjustment),
        ("actor", &event.actor),
        ("reason", &event.reason),
        ("amount", &event.amount),
    ];
    for (name, value) in names {
        if let Some(value) = value {
            object.insert(name.to_owned(), json!(value));
        }
    }
    if event.unit != 0 {
        object.insert("unit".into(), unit(event.unit).into());
    }
    if event.tier != 0 {
        object.insert("tier".into(), tier(event.tier).into());
    }
    if let Some(start_ms) = event.epoch_start_ms {
        object.insert("epoch".into(), instant(start_ms).into());
    }
    if let Some(percent) = event.percent {
        object.insert("percent".into(), percent.into());
    }
    if let Some(generation) = event.generation {
        put_u64(&mut object, "generation", generation);
    }
    if event.shadow {
        object.insert("lane".into(), "shadow".into());
    }
    if event.forced {
        object.insert("forced".into(), true.into());
    }
    if let (Some(restored), Some(first)) = (event.restored, event.first_rolled_back) {
        put_u64(&mut object, "restored", restored);
        put_u64(&mut object, "first_rolled_back", first);
    }
    object.insert("text".into(), event.text.clone().into());
    object.into()
}

fn line(event: &v1::Event) -> String {
    let about: Vec<&str> =
        [&event.limit, &event.tenant, &event.user].into_iter().flatten().map(String::as_str).collect();
    let about = about.join(" ");
    format!("{:>8}  {}  {:<14}  {about}  {}\n", event.sequence, instant(event.at_ms), event.kind, event.text)
}
