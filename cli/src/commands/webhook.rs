//! `holdfast tenant webhook`: where the events of tenants are sent.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdfast_client::Client;
use holdfast_ledger::command::SetWebhook;
use holdfast_ledger::ids::{ActorName, TenantId};
use holdfast_ledger::limits::{WEBHOOK_SECRET_BYTES_MAX, WEBHOOK_SECRET_BYTES_MIN};
use holdfast_ledger::webhook::{Webhook, WebhookSecret, WebhookUrl};
use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use super::plan::actor;
use crate::calls;
use crate::failure::{Failure, Outcome};
use crate::output::{Rows, grouped, put_u64};
use crate::settings::Settings;
use crate::show::instant;

/// What secrets begin with where they are written down, by the Standard Webhooks specification.
const SECRET_PREFIX: &str = "whsec_";

/// Bytes of a secret that is made here.
const SECRET_BYTES: usize = 32;

/// What can be done with webhooks.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Send a tenant's events to an address from now on, signed (docs/webhooks.md)
    Set {
        /// The tenant
        tenant: TenantId,
        /// The address, http or https
        #[arg(long)]
        url: String,
        /// File with the secret, as whsec_… or as it is [default: a new one is made and printed, once]
        #[arg(long, value_name = "FILE")]
        secret_file: Option<PathBuf>,
    },
    /// Show a tenant's webhook, and what waits for it
    Get {
        /// The tenant
        tenant: TenantId,
    },
    /// Send nothing any more
    Remove {
        /// The tenant
        tenant: TenantId,
    },
    /// Show all webhooks, and what waits for them
    List,
}

/// Does it.
pub async fn run(settings: &Settings, client: &Client, command: Command) -> Outcome {
    match command {
        Command::Set { tenant, url, secret_file } => {
            let url = WebhookUrl::new(&url).map_err(|error| Failure::usage(format!("--url {error}")))?;
            let (secret, made) = match secret_file {
                Some(file) => (read_secret(&file)?, None),
                None => {
                    let (secret, text) = make_secret();
                    (secret, Some(text))
                }
            };
            set(settings, client, tenant, Some(Webhook { url, secret }), made).await
        }
        Command::Remove { tenant } => set(settings, client, tenant, None, None).await,
        Command::Get { tenant } => get(settings, client, &tenant).await,
        Command::List => list(settings, client).await,
    }
}

async fn set(
    settings: &Settings,
    client: &Client,
    tenant: TenantId,
    webhook: Option<Webhook>,
    made: Option<String>,
) -> Outcome {
    let actor = ActorName::new(actor()).map_err(|error| Failure::usage(format!("the actor {error}")))?;
    let what = if webhook.is_some() { "tenant webhook set" } else { "tenant webhook remove" };
    let set = SetWebhook { tenant, webhook, actor };
    let answer = client.set_webhook(&set).await.map_err(|error| calls::failure(what, error))?;
    let mut object = Map::new();
    object.insert("changed".into(), answer.changed.into());
    put_u64(&mut object, "revision", answer.revision);
    if let Some(secret) = &made {
        object.insert("secret".into(), secret.clone().into());
    }
    settings.output.show(&Value::from(object), || {
        let tenant = &set.tenant;
        let done = match (set.webhook.is_some(), answer.changed) {
            (true, true) => format!("the events of {tenant} are sent there; its first is WEBHOOK_SET\n"),
            (true, false) => "it was so already\n".to_owned(),
            (false, true) => format!("the events of {tenant} are sent nowhere any more\n"),
            (false, false) => "there was none\n".to_owned(),
        };
        match &made {
            Some(secret) => format!("{done}secret: {secret}\nKeep it: it is not shown again.\n"),
            None => done,
        }
    })
}

async fn get(settings: &Settings, client: &Client, tenant: &TenantId) -> Outcome {
    let answer = client.webhooks(Some(tenant.as_str())).await;
    let answer = answer.map_err(|error| calls::failure("tenant webhook get", error))?;
    let Some(entry) = answer.webhooks.first() else {
        return Err(Failure::failed(format!("tenant {tenant} has no webhook")));
    };
    settings.output.show(&document(entry), || {
        let mut rows = Rows::new(["webhook", "value"]);
        for (name, value) in facts(entry) {
            rows.add_fact(name, value);
        }
        rows.text()
    })
}

async fn list(settings: &Settings, client: &Client) -> Outcome {
    let answer = client.webhooks(None).await;
    let answer = answer.map_err(|error| calls::failure("tenant webhook list", error))?;
    let all = json!({ "webhooks": answer.webhooks.iter().map(document).collect::<Vec<_>>() });
    settings.output.show(&all, || {
        if answer.webhooks.is_empty() {
            return "no tenant has a webhook\n".to_owned();
        }
        let mut rows = Rows::new(["tenant", "url", "delivered", "waiting", "since", "failures", "problem"]);
        for entry in &answer.webhooks {
            rows.add([
                entry.tenant.clone(),
                entry.url.clone(),
                grouped(entry.cursor),
                grouped(entry.waiting),
                entry.waiting_since_ms.map(instant).unwrap_or_default(),
                grouped(entry.failures.into()),
                entry.problem.clone().unwrap_or_default(),
            ]);
        }
        rows.text()
    })
}

fn facts(entry: &v1::WebhookEntry) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("tenant", entry.tenant.clone()),
        ("url", entry.url.clone()),
        ("secret's fingerprint", entry.secret_fingerprint.clone()),
        ("set", format!("{} by {}", instant(entry.set_at_ms), entry.actor)),
        ("delivered up to", grouped(entry.cursor)),
        ("waiting", grouped(entry.waiting)),
    ];
    if let Some(since_ms) = entry.waiting_since_ms {
        facts.push(("since", instant(since_ms)));
    }
    if let Some(problem) = &entry.problem {
        facts.push(("failed attempts", grouped(entry.failures.into())));
        facts.push(("last problem", problem.clone()));
    }
    facts
}

fn document(entry: &v1::WebhookEntry) -> Value {
    let mut object = Map::new();
    object.insert("tenant".into(), entry.tenant.clone().into());
    object.insert("url".into(), entry.url.clone().into());
    object.insert("secret_fingerprint".into(), entry.secret_fingerprint.clone().into());
    object.insert("set_at".into(), instant(entry.set_at_ms).into());
    object.insert("actor".into(), entry.actor.clone().into());
    put_u64(&mut object, "cursor", entry.cursor);
    put_u64(&mut object, "waiting", entry.waiting);
    object.insert("waiting_since".into(), entry.waiting_since_ms.map(instant).into());
    object.insert("failures".into(), entry.failures.into());
    object.insert("problem".into(), entry.problem.clone().into());
    object.into()
}

fn read_secret(file: &Path) -> Outcome<WebhookSecret> {
    let text = super::plan::read_document(file)?;
    let text = text.trim();
    let bytes = match text.strip_prefix(SECRET_PREFIX) {
        Some(encoded) => STANDARD.decode(encoded).map_err(|_| {
            Failure::usage(format!("{}: what follows {SECRET_PREFIX} is not base64", file.display()))
        })?,
        None => text.as_bytes().to_vec(),
    };
    WebhookSecret::new(&bytes).ok_or_else(|| {
        Failure::usage(format!(
            "{}: the secret has {} bytes; {WEBHOOK_SECRET_BYTES_MIN} to {WEBHOOK_SECRET_BYTES_MAX} are allowed",
            file.display(),
            bytes.len()
        ))
    })
}

/// A new secret, and how it is written.
fn make_secret() -> (WebhookSecret, String) {
    let bytes: [u8; SECRET_BYTES] = rand::random();
    let Some(secret) = WebhookSecret::new(&bytes) else { unreachable!("its length is between the bounds") };
    (secret, format!("{SECRET_PREFIX}{}", STANDARD.encode(bytes)))
}

const _: () = assert!(WEBHOOK_SECRET_BYTES_MIN <= SECRET_BYTES && SECRET_BYTES <= WEBHOOK_SECRET_BYTES_MAX);
