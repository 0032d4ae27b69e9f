//! Controlled credentials: the token with which a tool process reaches an actor's records (seed 004 §11).
//!
//! Invariant: issued for one call, bound to its run, attempt, actor and methods; held as a hash; void once the
//! call or the run has ended or it has expired.

use crate::live::LiveRun;
use crate::redaction::RUN_TOKEN;
use greenroom_store::records::Person;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Lifetime of a credential.
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);

/// What a credential grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    /// Whose records it grants.
    pub(crate) person: Person,
    pub(crate) run_id: String,
    pub(crate) attempt: i64,
    pub(crate) tool_call_id: String,
    /// `module.method`, each.
    pub(crate) methods: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Credentials {
    by_hash: Mutex<HashMap<[u8; 32], Held>>,
}

#[derive(Debug)]
struct Held {
    credential: Arc<Credential>,
    run: Weak<LiveRun>,
    until: Instant,
}

/// A credential in use; dropping it revokes it.
#[derive(Debug)]
pub(crate) struct Issued {
    credentials: Arc<Credentials>,
    hash: [u8; 32],
    secret: String,
}

impl Issued {
    pub(crate) fn expose(&self) -> &str {
        &self.secret
    }
}

impl Drop for Issued {
    fn drop(&mut self) {
        self.credentials.lock().remove(&self.hash);
    }
}

impl Credentials {
    /// A new credential for a call of a live run; none if the system has no random numbers.
    pub(crate) fn issue(
        self: &Arc<Self>,
        credential: Credential,
        run: &Arc<LiveRun>,
    ) -> Option<Issued> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).ok()?;
        let secret = format!("{RUN_TOKEN}{}", crate::ids::hex(&bytes));
        let hash = Sha256::digest(&secret).into();
        let held = Held {
            credential: Arc::new(credential),
            run: Arc::downgrade(run),
            until: Instant::now() + LIFETIME,
        };
        self.lock().insert(hash, held);
        Some(Issued { credentials: Arc::clone(self), hash, secret })
    }

    /// What a credential grants; none once it is void.
    pub(crate) fn find(&self, secret: &str) -> Option<Arc<Credential>> {
        let hash: [u8; 32] = Sha256::digest(secret).into();
        let held = self.lock();
        let issued = held.get(&hash).filter(|held| Instant::now() < held.until)?;
        issued.run.upgrade()?.rights()?;
        Some(Arc::clone(&issued.credential))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Held>> {
        self.by_hash.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
