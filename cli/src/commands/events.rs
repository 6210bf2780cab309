//! `holdfast events`: what happened, in the order of its numbers.

use holdfast_proto::json::event_document;
use holdfast_proto::v1;

use crate::calls;
use crate::failure::Outcome;
use crate::settings::Settings;
use crate::show::instant;

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
                    if !settings.output.show_one(&event_document(event), || line(event))? {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn line(event: &v1::Event) -> String {
    let about: Vec<&str> =
        [&event.limit, &event.tenant, &event.user].into_iter().flatten().map(String::as_str).collect();
    let about = about.join(" ");
    format!("{:>8}  {}  {:<16}  {about}  {}\n", event.sequence, instant(event.at_ms), event.kind, event.text)
}
