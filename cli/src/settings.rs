//! What every command that talks to a cluster needs: a flag beats the environment, which beats the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::failure::{Failure, Outcome};
use crate::output::{Format, Output};
use crate::parse;

/// The deadline of one call when nobody says otherwise.
const DEADLINE_DEFAULT_MS: u64 = 5_000;

/// Options that every command takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Global {
    /// Client addresses of members, HOST:PORT; any one of them is enough
    #[arg(long, global = true, value_delimiter = ',', env = "HOLDFAST_ENDPOINTS", help_heading = "Common")]
    pub endpoints: Vec<String>,

    /// How results are written [default: table]
    #[arg(long, short = 'w', global = true, value_enum, env = "HOLDFAST_WRITE_OUT", help_heading = "Common")]
    pub write_out: Option<Format>,

    /// The same as -w json
    #[arg(long, global = true, help_heading = "Common")]
    pub json: bool,

    /// How long one call may take, for example 500ms or 5s [default: 5s]
    #[arg(long, global = true, value_parser = parse::duration_ms, env = "HOLDFAST_DEADLINE",
          value_name = "DURATION", help_heading = "Common")]
    pub deadline: Option<u64>,

    /// File with defaults for these options [default: holdfast/settings.toml in the user's configuration folder]
    #[arg(long, global = true, env = "HOLDFAST_SETTINGS", value_name = "FILE", help_heading = "Common")]
    pub settings: Option<PathBuf>,
}

/// The file of defaults.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    endpoints: Vec<String>,
    write_out: Option<Format>,
    deadline: Option<String>,
}

/// The options in force.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Client addresses, perhaps none.
    endpoints: Vec<String>,
    /// Where results go.
    pub output: Output,
    /// The deadline of one call.
    pub deadline: Duration,
}

impl Settings {
    /// Puts flags, environment (both already in `global`) and file together.
    pub fn resolve(global: &Global) -> Outcome<Settings> {
        let file = load(global.settings.as_deref())?;
        let file_deadline = match &file.deadline {
            Some(text) => {
                Some(parse::duration_ms(text).map_err(|e| Failure::usage(format!("settings: {e}")))?)
            }
            None => None,
        };
        let format = if global.json { Some(Format::Json) } else { global.write_out.or(file.write_out) };
        let deadline_ms = global.deadline.or(file_deadline).unwrap_or(DEADLINE_DEFAULT_MS);
        if deadline_ms == 0 {
            return Err(Failure::usage("the deadline is 0: nothing can be done in no time"));
        }
        let endpoints = if global.endpoints.is_empty() { file.endpoints } else { global.endpoints.clone() };
        let endpoints: Vec<String> =
            endpoints.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect();
        endpoints.iter().try_for_each(|endpoint| check_endpoint(endpoint))?;
        Ok(Settings {
            endpoints,
            output: Output::new(format.unwrap_or_default()),
            deadline: Duration::from_millis(deadline_ms),
        })
    }

    /// The addresses to connect to, as URLs.
    pub fn endpoints(&self) -> Outcome<Vec<String>> {
        if self.endpoints.is_empty() {
            return Err(Failure::usage("no cluster is named")
                .advise("Pass --endpoints HOST:PORT, or set HOLDFAST_ENDPOINTS. `holdfast dev` starts a cluster and prints its addresses."));
        }
        Ok(self.endpoints.iter().map(|endpoint| url(endpoint)).collect())
    }
}

fn url(endpoint: &str) -> String {
    if endpoint.contains("://") { endpoint.to_owned() } else { format!("http://{endpoint}") }
}

fn check_endpoint(endpoint: &str) -> Outcome {
    let wrong = |what: &str| {
        Failure::usage(format!("endpoint {endpoint:?} {what}"))
            .advise("An endpoint is HOST:PORT, for example 127.0.0.1:7401.")
    };
    let address = match endpoint.split_once("://") {
        Some(("http", rest)) => rest,
        Some((scheme, _)) => return Err(wrong(&format!("has the scheme {scheme:?}; only http is spoken"))),
        None => endpoint,
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(|| wrong("has no port"))?;
    if host.is_empty() {
        return Err(wrong("has no host"));
    }
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(()),
        _ => Err(wrong("has no port from 1 to 65535 at its end")),
    }
}

fn load(named: Option<&Path>) -> Outcome<File> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => match usual_place() {
            Some(path) if path.exists() => path,
            _ => return Ok(File::default()),
        },
    };
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Failure::usage(format!("cannot read the settings file {}: {e}", path.display())))?;
    toml::from_str(&text).map_err(|e| {
        Failure::usage(format!(
            "the settings file {} is wrong:\n{}",
            path.display(),
            e.to_string().trim_end()
        ))
    })
}

fn usual_place() -> Option<PathBuf> {
    let folder = match std::env::var_os("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".config"),
    };
    Some(folder.join("holdfast").join("settings.toml"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn settings_file(text: &str) -> (tempfile::TempDir, Global) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, text).unwrap();
        (folder, Global { settings: Some(path), ..Global::default() })
    }

    #[test]
    fn a_flag_beats_the_file() {
        let (_folder, mut global) =
            settings_file("endpoints = [\"a:1\"]\nwrite_out = \"json\"\ndeadline = \"2s\"\n");
        let from_file = Settings::resolve(&global).unwrap();
        assert_eq!(from_file.endpoints().unwrap(), ["http://a:1"]);
        assert!(from_file.output.is_json());
        assert_eq!(from_file.deadline, Duration::from_secs(2));

        global.endpoints = vec!["b:2".into(), "http://c:3".into()];
        global.write_out = Some(Format::Table);
        global.deadline = Some(100);
        let from_flags = Settings::resolve(&global).unwrap();
        assert_eq!(from_flags.endpoints().unwrap(), ["http://b:2", "http://c:3"]);
        assert!(!from_flags.output.is_json());
        assert_eq!(from_flags.deadline, Duration::from_millis(100));
    }

    #[test]
    fn a_wrong_file_is_named() {
        let (_folder, global) = settings_file("endpoint = \"a:1\"\n");
        let failure = Settings::resolve(&global).unwrap_err();
        assert!(
            failure.problem.contains("settings.toml") && failure.problem.contains("endpoint"),
            "{failure}"
        );
    }

    #[test]
    fn wrong_endpoints_are_refused_by_name() {
        for endpoint in ["localhost", ":7401", "localhost:0", "localhost:70000", "ftp://a:1", "a:b"] {
            let failure = check_endpoint(endpoint).unwrap_err();
            assert!(failure.problem.contains(endpoint), "{failure}");
        }
    }
}
