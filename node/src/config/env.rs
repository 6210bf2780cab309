//! The environment's part of a configuration.
//!
//! A misspelt variable would be a setting that silently does not hold. What begins like a key
//! (`HOLDFAST_RAFT_…`) is meant for a node and must be one; other names that begin with `HOLDFAST_` belong to
//! the program's other commands or to whoever runs it.

use super::load::{Layer, Problem, env_name, keys};

/// What every variable of a key begins with.
pub(super) const ENV_PREFIX: &str = "HOLDFAST_";

/// The layers that the environment sets, in the order of their keys, and what is meant to set one and does not.
pub(super) fn layers(env: impl IntoIterator<Item = (String, String)>) -> (Vec<Layer>, Vec<Problem>) {
    let known: Vec<(String, String)> = keys().into_iter().map(|key| (env_name(&key), key)).collect();
    let (mut layers, mut problems) = (Vec::new(), Vec::new());
    for (source, text) in env {
        if let Some((_, key)) = known.iter().find(|(name, _)| *name == source) {
            layers.push(Layer { source, key: key.clone(), text });
            continue;
        }
        let Some(first) = first_word(&source) else { continue };
        let near: Vec<&str> = known
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| first_word(name) == Some(first))
            .collect();
        if !near.is_empty() && !is_service_link(&source, &text) {
            let problem = format!("there is no such setting; known are {}", near.join(", "));
            problems.push(Problem::new(source, problem));
        }
    }
    layers.sort_by(|a, b| a.key.cmp(&b.key));
    problems.sort_by(|a, b| a.key.cmp(&b.key));
    (layers, problems)
}

/// `RAFT` of `HOLDFAST_RAFT_HEARTBEAT_MS`.
fn first_word(name: &str) -> Option<&str> {
    name.strip_prefix(ENV_PREFIX)?.split('_').next()
}

/// Whether Kubernetes sets it in every container beside a service called `holdfast-client` or the like.
fn is_service_link(name: &str, text: &str) -> bool {
    name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || is_port_link(name, text)
}

/// `…_PORT=tcp://…`, and `…_PORT_7401_TCP` with its parts.
fn is_port_link(name: &str, text: &str) -> bool {
    let Some((_, rest)) = name.split_once("_PORT") else { return false };
    match rest.strip_prefix('_').and_then(|rest| rest.split('_').next()) {
        None => rest.is_empty() && text.contains("://"),
        Some(port) => port.parse::<u16>().is_ok(),
    }
}
