//! Calls that are nearly proper.
//!
//! Invariant: every line is JSON and every id is used once; all else may be anything.

use crate::calls::Target;
use greenroom_protocol::api::Method;
use greenroom_testkit::random::Random;
use serde_json::{Value, json};

/// What a call says about its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// The run that is under way on this connection.
    Own,
    Foreign,
    Ended,
    /// None, or none that there is.
    Nobody,
    /// Its own and another one in the same object: whatever is made of it, it is not the other one's.
    Twice,
}

/// What there is to name.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pub own: String,
    pub own_event: String,
    pub own_artifact: String,
    pub not_own: Vec<(Claim, String)>,
    /// Ids, cursors and names, most of them of others.
    pub ids: Vec<String>,
}

pub(super) struct Generator {
    names: Names,
    random: Random,
}

/// Calls that cost the host much: made more seldom, so that the others get their turn.
const DEAR: [&str; 4] =
    ["platform.request_action", "artifacts.create", "artifacts.open_stream", "history.search"];

/// Fields of some method, and some that no method has.
const FIELDS: [&str; 28] = [
    "key",
    "scope",
    "area",
    "value",
    "prefix",
    "cursor",
    "before_cursor",
    "after_cursor",
    "limit",
    "conversation_id",
    "event_id",
    "artifact_id",
    "offset",
    "length",
    "query",
    "filters",
    "top_k",
    "if_version",
    "ttl_s",
    "direction",
    "action",
    "target",
    "payload",
    "workspace_id",
    "actor_id",
    "plugin",
    "agent",
    "attempt",
];

impl Generator {
    pub(super) fn new(names: Names, seed: u64) -> Self {
        Self { names, random: Random::from_seed(seed) }
    }

    /// A claim, a method and the text of its parameters.
    pub(super) fn call(&mut self) -> (Claim, String, String) {
        let method = self.method();
        let mut params = match Method::parse(&method) {
            Some(_) => self.proper(&method),
            None => json!({}),
        };
        for _ in 0..self.random.below(3) {
            self.alter(&mut params);
        }
        let (claim, text) = self.claimed(params);
        (claim, method, text)
    }

    fn method(&mut self) -> String {
        let methods = Method::ALL;
        let method = self.pick(methods).as_str();
        match self.random.below(100) {
            0 => format!("{method}\u{0}"),
            1 => {
                self.pick(&[
                    "",
                    "state",
                    "state.GET",
                    "rpc.discover",
                    "run_agent",
                    "../state.get",
                    "*",
                ])
                .to_string()
                    + "x"
            }
            _ if DEAR.contains(&method) && !self.random.one_in(20) => "state.get".to_owned(),
            _ => method.to_owned(),
        }
    }

    fn proper(&mut self, method: &str) -> Value {
        let conversation = match self.random.below(4) {
            0 => Some(self.name()),
            1 => Some("mine".to_owned()),
            _ => None,
        };
        let own = !self.random.one_in(3);
        let target = Target {
            conversation,
            event: if own { self.names.own_event.clone() } else { self.name() },
            artifact: if own { self.names.own_artifact.clone() } else { self.name() },
            scope: self.pick(&[
                "conversation",
                "conversation",
                "actor",
                "subject",
                "runner",
                "binding",
                "own",
            ]),
            area: self.pick(&["plugin", "plugin", "binding", "workspace", "host"]),
            action: self.pick(&["message.send", "message.react", "message.delete"]),
            more: json!({}),
        };
        target.params(method)
    }

    /// Takes a field away, or puts something else in its place.
    fn alter(&mut self, params: &mut Value) {
        let Some(object) = params.as_object_mut() else { return };
        let field = match self.random.one_in(2) {
            true => (*self.pick(&FIELDS)).to_owned(),
            false => {
                let at = usize::try_from(self.random.below(1 + object.len() as u64)).unwrap();
                object.keys().nth(at).cloned().unwrap_or_else(|| "extra".to_owned())
            }
        };
        match self.random.one_in(5) {
            true => drop(object.remove(&field)),
            false => drop(object.insert(field, self.anything())),
        }
    }

    fn anything(&mut self) -> Value {
        match self.random.below(16) {
            0 => Value::Null,
            1 => json!(-1),
            2 => json!(i64::MAX),
            3 => json!(1e308),
            4 => json!(""),
            5 => json!("\u{0}"),
            6 => json!("x".repeat(600)),
            7 => json!("../../../etc/passwd"),
            8 => json!("\u{202e}\u{1f433} 鲸鱼 \u{ffff}"),
            9 => json!([self.name(), {}]),
            10 => {
                json!({"conversation_id": self.name(), "thread_id": self.name(), "actor_id": self.name()})
            }
            11 => json!(true),
            12 => json!(self.random.below(1000)),
            13 if self.random.one_in(20) => json!("x".repeat(300_000)),
            13 | 14 => (0..self.random.below(200)).fold(json!(0), |inner, _| json!([inner])),
            _ => json!(self.name()),
        }
    }

    /// The parameters as text, with a run.
    fn claimed(&mut self, mut params: Value) -> (Claim, String) {
        let own = json!(self.names.own);
        match self.random.below(20) {
            0 => (Claim::Nobody, params.to_string()),
            1 => {
                params["run_id"] = match self.random.below(6) {
                    0 => json!(self.names.own.to_uppercase()),
                    1 => json!(format!("{} ", self.names.own)),
                    2 => json!([own]),
                    3 => json!({"run_id": own}),
                    4 => json!(""),
                    _ => json!(self.name()),
                };
                (Claim::Nobody, params.to_string())
            }
            2 | 3 => {
                let (claim, run_id) = self.names.not_own
                    [usize::try_from(self.random.below(self.names.not_own.len() as u64)).unwrap()]
                .clone();
                params["run_id"] = run_id.into();
                (claim, params.to_string())
            }
            4 if self.random.one_in(4) => {
                params["run_id"] = own;
                let (_, other) = &self.names.not_own[0];
                let text = params.to_string();
                (Claim::Twice, format!("{{\"run_id\":\"{other}\",{}", &text[1..]))
            }
            _ => {
                params["run_id"] = own;
                (Claim::Own, params.to_string())
            }
        }
    }

    fn name(&mut self) -> String {
        let at = usize::try_from(self.random.below(self.names.ids.len() as u64)).unwrap();
        self.names.ids[at].clone()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.random.below(from.len() as u64)).unwrap()]
    }
}
