//! Open sessions, sign-in codes and failed attempts.
//!
//! Invariant: a session has exactly the current permissions of its token and ends with it. Cookie values and
//! codes are random and stored as hashes only, so lookups leak nothing by timing.

use super::attempts::{Attempts, Kind};
use super::codes::Codes;
use super::open::{Hash, OpenSessions};
use crate::access::hash_token;
use greenroom_config::Limits;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// 256 bits and 128 bits.
const SESSION_BYTES: usize = 32;
const CODE_BYTES: usize = 16;

pub(crate) struct Sessions {
    limits: Limits,
    /// Notified when sessions or tokens end.
    changes: watch::Sender<()>,
    state: Mutex<State>,
}

struct State {
    open: OpenSessions,
    codes: Codes,
    attempts: Attempts,
}

/// What a user presents to sign in.
pub(super) enum Credential {
    Code(String),
    Token(String),
}

impl Credential {
    fn kind(&self) -> Kind {
        match self {
            Credential::Code(_) => Kind::Code,
            Credential::Token(_) => Kind::Token,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum SignInError {
    WrongCredential,
    /// Wrong, after too many others.
    TooManyAttempts,
}

impl Sessions {
    pub(crate) fn new(limits: Limits) -> Self {
        let state = State {
            open: OpenSessions::default(),
            codes: Codes::default(),
            attempts: Attempts::default(),
        };
        Self { limits, changes: watch::Sender::new(()), state: Mutex::new(state) }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A code that opens one session for a token.
    pub(crate) fn new_code(&self, token: Hash) -> Result<String, getrandom::Error> {
        let code = random::<CODE_BYTES>()?;
        self.lock().codes.add(hash_token(&code), token, Instant::now());
        Ok(code)
    }

    /// The token that a credential belongs to.
    pub(super) fn authenticate(
        &self,
        from: IpAddr,
        credential: &Credential,
        is_valid: impl Fn(&Hash) -> bool,
    ) -> Result<Hash, SignInError> {
        let (now, mut state) = (Instant::now(), self.lock());
        let token = match credential {
            Credential::Code(code) => {
                state.codes.take(&hash_token(code), self.limits.sign_in_code, now)
            }
            Credential::Token(token) => Some(hash_token(token)),
        };
        match token.filter(is_valid) {
            Some(token) => Ok(token),
            None if state.attempts.take((credential.kind(), from), now) => {
                Err(SignInError::WrongCredential)
            }
            None => Err(SignInError::TooManyAttempts),
        }
    }

    /// Opens a session; returns the value of its cookie.
    pub(super) fn open(&self, token: Hash) -> Result<String, getrandom::Error> {
        let secret = random::<SESSION_BYTES>()?;
        self.lock().open.add(hash_token(&secret), token, &self.limits, Instant::now());
        Ok(secret)
    }

    /// The token of a session; counts as a use of it.
    pub(crate) fn token_of(&self, session: &Hash) -> Option<Hash> {
        self.lock().open.touch(session, &self.limits, Instant::now())
    }

    pub(super) fn end(&self, session: &Hash) {
        self.lock().open.end(session);
        self.changes.send_replace(());
    }

    /// Whether a session is open; does not count as a use of it.
    pub(crate) fn is_open(&self, session: &Hash) -> bool {
        self.lock().open.is_open(session, &self.limits, Instant::now())
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Ends the sessions and codes of tokens that are no longer valid.
    pub(crate) fn retain_tokens(&self, is_valid: impl Fn(&Hash) -> bool) {
        let mut state = self.lock();
        state.open.retain_tokens(&is_valid);
        state.codes.retain_tokens(&is_valid);
        drop(state);
        self.changes.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn random<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
