//! The sign-in at one server, in a file of its own.
//!
//! Invariant: the file is readable by its owner only and replaced at once; a sign-in is used only for the address and
//! the client that it was made for.

use super::token::AuthMethod;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// A client of an authorization server. No `Debug`: it may hold a secret.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) auth_method: AuthMethod,
    /// What it was registered with, if the host registered it.
    pub(super) registered_for: Option<String>,
}

/// A sign-in. No `Debug`: it holds secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SignIn {
    /// The address of the MCP server.
    pub(super) server: String,
    pub(super) resource: String,
    pub(super) issuer: Option<String>,
    pub(super) token_endpoint: String,
    pub(super) client: Client,
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// Seconds since 1970.
    pub(super) expires_at: Option<u64>,
    pub(super) scopes: Vec<String>,
}

impl SignIn {
    /// Everything that must not be shown.
    pub(super) fn secrets(&self) -> Vec<String> {
        let own =
            [Some(&self.access_token), self.refresh_token.as_ref(), self.client.secret.as_ref()];
        own.into_iter().flatten().cloned().collect()
    }
}

/// `None` also for a file that cannot be read: then the user signs in again.
pub(super) fn load(file: &Path) -> Option<SignIn> {
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "cannot read a sign-in");
            return None;
        }
    };
    let sign_in = serde_json::from_slice(&text);
    sign_in.inspect_err(|_| tracing::warn!(file = %file.display(), "a sign-in is damaged")).ok()
}

pub(super) fn store(file: &Path, sign_in: &SignIn) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let fresh = file.with_extension("new");
    // A leftover of a crash may have another mode.
    remove(&fresh)?;
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    out.write_all(&serde_json::to_vec(sign_in)?)?;
    out.sync_all()?;
    std::fs::rename(&fresh, file)
}

pub(super) fn remove(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_sign_in_is_private_and_survives_damage_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sign-ins/issues.json");
        assert!(load(&file).is_none());
        let client = Client {
            id: "c".to_owned(),
            secret: Some("s".to_owned()),
            auth_method: AuthMethod::ClientSecretPost,
            registered_for: None,
        };
        let sign_in = SignIn {
            server: "https://m.example/mcp".to_owned(),
            resource: "https://m.example/mcp".to_owned(),
            issuer: None,
            token_endpoint: "https://m.example/token".to_owned(),
            client,
            access_token: "a".to_owned(),
            refresh_token: None,
            expires_at: Some(7),
            scopes: Vec::new(),
        };
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file.with_extension("new"), "left over").unwrap();
        store(&file, &sign_in).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(load(&file) == Some(sign_in));
        std::fs::write(&file, "{").unwrap();
        assert!(load(&file).is_none());
    }
}
