//! How to reach the host: a data folder, or an address and a token.
//!
//! Invariant: the folder is read on every use, because a restarted host may have another address.

use super::pin;
use crate::failure::{Exit, Failure};
use clap::Args;
use greenroom_config::Secret;
use greenroom_config::env;
use reqwest::Url;
use serde::Deserialize;
use std::path::{Path, PathBuf};

pub const DEFAULT_DATA: &str = "greenroom-data";

/// The options of every command that calls a host.
#[derive(Debug, Clone, Args)]
pub struct HostArgs {
    /// Data folder of the host [default: ./greenroom-data, or `GREENROOM_URL` with
    /// `GREENROOM_TOKEN`]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub enum Place {
    Address { url: Url, token: Secret },
    Folder(PathBuf),
}

/// The address and token of a host.
#[derive(Debug, Clone)]
pub struct Host {
    pub url: Url,
    pub token: Secret,
}

/// `host.json`, which the host writes into its data folder.
#[derive(Deserialize)]
pub(super) struct HostFile {
    url: String,
    /// Fingerprint of its certificate, if it serves TLS itself.
    pub(super) certificate_sha256: Option<String>,
}

impl HostFile {
    pub(super) fn read(dir: &Path) -> Result<Self, Failure> {
        let no_host = |source: std::io::Error| {
            let message = format!("no host is running with the data folder `{}`", dir.display());
            Failure::from(anyhow::Error::new(source).context(message)).exit(Exit::NotFound).hint(
                "start one with `greenroom serve`, or select another with `--data DIR` or `GREENROOM_URL`",
            )
        };
        let path = dir.join("host.json");
        let text = std::fs::read_to_string(&path).map_err(no_host)?;
        Ok(serde_json::from_str(&text).map_err(|error| {
            anyhow::Error::new(error).context(format!("cannot parse `{}`", path.display()))
        })?)
    }
}

impl Place {
    /// `--data` before `GREENROOM_URL` before `GREENROOM_DATA` before the default folder.
    pub fn find(args: &HostArgs, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        if let Some(dir) = &args.data {
            return Ok(Place::Folder(dir.clone()));
        }
        let Some(url) = env(env::URL) else {
            let dir = env(env::DATA).unwrap_or_else(|| DEFAULT_DATA.to_owned());
            return Ok(Place::Folder(PathBuf::from(dir)));
        };
        let token = env(env::TOKEN).and_then(Secret::new).ok_or_else(|| {
            Failure::new(format!("`{}` is set but `{}` is not", env::URL, env::TOKEN))
                .exit(Exit::Usage)
                .hint("the admin token is in `admin-token` in the host's data folder")
        })?;
        Ok(Place::Address { url: address(&url)?, token })
    }

    /// A client that trusts this host.
    pub fn http(&self, builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Failure> {
        let builder = match self {
            Place::Address { .. } => builder,
            Place::Folder(dir) => {
                builder.use_preconfigured_tls(pin::config(dir).map_err(anyhow::Error::new)?)
            }
        };
        Ok(builder.build().map_err(anyhow::Error::new)?)
    }

    pub fn locate(&self) -> Result<Host, Failure> {
        match self {
            Place::Address { url, token } => Ok(Host { url: url.clone(), token: token.clone() }),
            Place::Folder(dir) => in_folder(dir),
        }
    }
}

fn in_folder(dir: &Path) -> Result<Host, Failure> {
    let file = HostFile::read(dir)?;
    let path = dir.join("admin-token");
    let token = std::fs::read_to_string(&path).map_err(|error| {
        anyhow::Error::new(error).context(format!("cannot read `{}`", path.display()))
    })?;
    let token = Secret::new(token.trim())
        .ok_or_else(|| Failure::new(format!("`{}` is empty", path.display())))?;
    Ok(Host { url: address(&file.url)?, token })
}

fn address(text: &str) -> Result<Url, Failure> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| {
        Failure::new(format!("`{text}` is not the address of a host"))
            .exit(Exit::Usage)
            .hint("write e.g. `http://127.0.0.1:8700`")
    })
}
