//! The authorization matrix: every method in every situation, with the code that the contract gives it.
//!
//! Invariant: the table is written by hand from the sentences quoted below and knows nothing of the host's own
//! table; a method or a situation that it lacks is a failure, never a gap.

use crate::calls::Target;
use crate::facts::MARK;
use crate::stage::{PATIENCE, Stage};
use crate::wire::{Reply, Wire, with_run};
use greenroom_protocol::ErrorCode;
use greenroom_protocol::api::Method;
use greenroom_protocol::api::audit::AuditView;
use greenroom_testkit::wait::wait_for;
use serde_json::Value;

/// The situations, in the order of the columns.
///
/// - `granted`: the control; manifest and binding allow it, so it is served.
/// - `none`, `unknown`, `ended`, `gone`, `foreign`, `earlier`, `cancelled`: "unauthorized: no run, ended run,
///   another connection's run" (CONTRACT §4); "late output of an earlier attempt is dropped: an attempt belongs
///   to one connection and one `run_agent` call" (DESIGN §3). A cancelled run has ended.
/// - `manifest`: "unauthorized: permission missing".
/// - `policy`: the binding grants none: "area or scope not granted" is unauthorized; of named resources none is
///   in the grant, so that each id is "outside the grant": not_found, and a list of them is empty.
/// - `resource`: "not_found: an id that does not exist or is outside the grant: the same answer"; a scope, an
///   area or an action beside the granted ones is unauthorized.
/// - `conversation`, `actor`, `workspace`: ids of others are "outside the grant"; what has no id of its own is
///   found by the run's own parties, so that there is nothing to be seen of others.
/// - `oversized`: "payload_too_large"; `rate_run`, `rate_plugin`: "rate_limited (retryable)"; `deadline`:
///   "deadline_exceeded".
const SITUATIONS: &str = "granted none unknown ended gone foreign earlier manifest policy resource conversation \
                          actor workspace oversized rate_run rate_plugin deadline cancelled";

/// U unauthorized, N not_found, P payload_too_large, R rate_limited, D deadline_exceeded, O served, E served with
/// nothing of others in it. What makes no sense is a dot:
///
/// - `granted` of models, tools and knowledge bases: there are none in this host; see `resource`.
/// - `granted` and `conversation` of `artifacts.append` and `artifacts.commit`: uploads belong to their run; see
///   `files.rs`.
/// - `resource` of `harness.permission`: it names none, and reaches nothing but the decision about itself; the policy decides
///   with an answer.
/// - `resource` of `tools.search`, `knowledge.list`, `artifacts.create`, `artifacts.begin`, `steering.pull` and the
///   lists of history and events: they name none; conversations have a column of their own.
/// - `conversation` of models, tools, knowledge bases and storage: they belong to no conversation.
/// - `actor` of all but state: history, events and artifacts belong to conversations, storage to plugins,
///   bindings and workspaces; there is nothing of an actor to reach.
/// - `workspace` of models, tools, knowledge bases: they are the host's; of what creates artifacts and of
///   `platform.request_action`: they cannot name one.
#[rustfmt::skip]
const TABLE: [(&str, &str); 32] = [
    //                          granted none unknown ended gone foreign earlier manifest policy resource conv actor workspace oversized rate rate deadline cancelled
    ("models.invoke",           ".       U    U       U     U    U       U       U        N      N        .    .     .         P         R    R    D        U"),
    ("models.stream",           ".       U    U       U     U    U       U       U        N      N        .    .     .         P         R    R    D        U"),
    ("models.rerank",           ".       U    U       U     U    U       U       U        N      N        .    .     .         P         R    R    D        U"),
    ("models.embed",            ".       U    U       U     U    U       U       U        N      N        .    .     .         P         R    R    D        U"),
    ("models.count_tokens",     ".       U    U       U     U    U       U       U        N      N        .    .     .         P         R    R    D        U"),
    ("tools.get_detail",        ".       U    U       U     U    U       U       U        N      N        .    .     .         P         R    R    D        U"),
    ("tools.search",            "E       U    U       U     U    U       U       U        E      .        .    .     .         P         R    R    D        U"),
    ("tools.call",              ".       U    U       U     U    U       U       U        N      N        .    .     .         P         R    R    D        U"),
    ("knowledge.list",          "E       U    U       U     U    U       U       U        E      .        .    .     .         P         R    R    D        U"),
    ("knowledge.retrieve",      ".       U    U       U     U    U       U       U        N      N        .    .     .         P         R    R    D        U"),
    ("history.page",            "O       U    U       U     U    U       U       U        U      .        N    .     N         P         R    R    D        U"),
    ("history.search",          "O       U    U       U     U    U       U       U        U      .        N    .     N         P         R    R    D        U"),
    ("events.get",              "O       U    U       U     U    U       U       U        U      N        N    .     N         P         R    R    D        U"),
    ("events.page",             "O       U    U       U     U    U       U       U        U      .        N    .     N         P         R    R    D        U"),
    ("artifacts.metadata",      "O       U    U       U     U    U       U       U        U      N        N    .     N         P         R    R    D        U"),
    ("artifacts.read_range",    "O       U    U       U     U    U       U       U        U      N        N    .     N         P         R    R    D        U"),
    ("artifacts.open_stream",   "O       U    U       U     U    U       U       U        U      N        N    .     N         P         R    R    D        U"),
    ("artifacts.create",        "O       U    U       U     U    U       U       U        U      .        E    .     .         P         R    R    D        U"),
    ("artifacts.begin",         "O       U    U       U     U    U       U       U        U      .        E    .     .         P         R    R    D        U"),
    ("artifacts.append",        ".       U    U       U     U    U       U       U        U      N        .    .     .         P         R    R    D        U"),
    ("artifacts.commit",        ".       U    U       U     U    U       U       U        U      N        .    .     .         P         R    R    D        U"),
    ("state.get",               "O       U    U       U     U    U       U       U        U      U        E    E     E         P         R    R    D        U"),
    ("state.set",               "O       U    U       U     U    U       U       U        U      U        E    E     E         P         R    R    D        U"),
    ("state.delete",            "O       U    U       U     U    U       U       U        U      U        E    E     E         P         R    R    D        U"),
    ("state.list",              "O       U    U       U     U    U       U       U        U      U        E    E     E         P         R    R    D        U"),
    ("storage.get",             "O       U    U       U     U    U       U       U        U      U        .    .     E         P         R    R    D        U"),
    ("storage.set",             "O       U    U       U     U    U       U       U        U      U        .    .     E         P         R    R    D        U"),
    ("storage.delete",          "O       U    U       U     U    U       U       U        U      U        .    .     E         P         R    R    D        U"),
    ("storage.list",            "O       U    U       U     U    U       U       U        U      U        .    .     E         P         R    R    D        U"),
    ("platform.request_action", "O       U    U       U     U    U       U       U        U      U        N    .     .         P         R    R    D        U"),
    ("steering.pull",           "O       U    U       U     U    U       U       U        U      .        E    .     E         P         R    R    D        U"),
    ("harness.permission",      "O       U    U       U     U    U       U       U        E      .        .    .     .         P         R    R    D        U"),
];

#[test]
fn the_table_says_something_about_every_method_in_every_situation() {
    let written: Vec<&str> = TABLE.iter().map(|(method, _)| *method).collect();
    let known: Vec<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
    assert_eq!(written, known);
    let width = SITUATIONS.split_whitespace().count();
    for (method, row) in TABLE {
        assert_eq!(row.split_whitespace().count(), width, "{method}");
    }
    let cells = TABLE.iter().flat_map(|(_, row)| row.split_whitespace());
    assert_eq!(cells.filter(|cell| *cell != ".").count(), 496);
}

/// Calls of one runner for one run, and what came of them.
pub(crate) struct Probe<'a> {
    pub stage: &'a Stage,
    pub wire: &'a Wire,
    /// The runner's name in the configuration, and its plugin.
    pub runner: &'a str,
    pub plugin: &'a str,
    /// What the calls claim.
    pub run_id: Option<String>,
    /// Where the run is that is claimed; what no live run stands behind is kept with the default one.
    pub workspace: &'a str,
    made: Vec<(String, String)>,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(stage: &'a Stage, wire: &'a Wire, runner: &'a str) -> Self {
        let (run_id, made) = (None, Vec::new());
        let plugin = if runner == "alpha" { "test/alpha" } else { "test/beta" };
        Self { stage, wire, runner, plugin, run_id, workspace: "default", made }
    }

    pub(crate) fn claiming(mut self, run_id: &str) -> Self {
        self.run_id = Some(run_id.to_owned());
        self
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Reply {
        let params = match &self.run_id {
            Some(run_id) => with_run(params, run_id),
            None => params,
        };
        let reply = self.wire.call(method, params).await;
        let code = match &reply {
            // An answer, and recorded as the refusal that it is.
            Ok(answer) if answer["decision"] == "deny" => "unauthorized",
            Ok(_) => "ok",
            Err(error) => error.code.as_str(),
        };
        self.made.push((method.to_owned(), code.to_owned()));
        reply
    }

    /// Counts a call that was made without the probe.
    pub(crate) fn made_before(&mut self, method: &str, code: &str) {
        self.made.push((method.to_owned(), code.to_owned()));
    }

    /// Makes every call of a column and compares the codes.
    pub(crate) async fn column(&mut self, situation: &str, target: &Target) {
        for (method, cell) in column(situation) {
            let reply = self.call(method, target.params(method)).await;
            assert_reply(situation, method, cell, &reply);
        }
    }

    /// One audit record per call, with its outcome, and none beside them.
    pub(crate) async fn assert_audited(&self) {
        let mut made = self.made.clone();
        made.sort_unstable();
        let run_id = self.run_id.as_deref();
        let records = wait_for("the records of all calls", PATIENCE, async || {
            let records: Vec<AuditView> = self
                .stage
                .audit(self.workspace)
                .await
                .into_iter()
                .map(|record| serde_json::from_value(record).unwrap())
                .collect();
            let is_ours =
                |it: &AuditView| it.run_id.as_deref() == run_id && it.runner == self.runner;
            let ours: Vec<AuditView> = records.into_iter().filter(is_ours).collect();
            (ours.len() >= made.len()).then_some(ours)
        })
        .await;
        assert!(
            records.iter().all(|it| it.plugin == self.plugin && it.bytes_in > 0),
            "{records:?}"
        );
        let mut recorded: Vec<(String, String)> =
            records.into_iter().map(|record| (record.method, record.code)).collect();
        recorded.sort_unstable();
        assert_eq!(recorded, made);
    }
}

/// The cells of a situation that make sense.
fn column(situation: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let place = SITUATIONS.split_whitespace().position(|it| it == situation).unwrap();
    let cells = TABLE.iter().map(move |(method, row)| {
        let cell = row.split_whitespace().nth(place).unwrap();
        (*method, cell)
    });
    cells.filter(|(_, cell)| *cell != ".")
}

fn assert_reply(situation: &str, method: &str, cell: &str, reply: &Reply) {
    let told = format!("{method} in `{situation}`: {reply:?}");
    let code = match cell {
        "O" => return assert!(reply.is_ok(), "{told}"),
        "E" => {
            assert!(reply.is_ok(), "{told}");
            return assert!(!told.contains(MARK) && !told.contains("eHlsb3Bob25l"), "{told}");
        }
        "U" => ErrorCode::Unauthorized,
        "N" => ErrorCode::NotFound,
        "P" => ErrorCode::PayloadTooLarge,
        "R" => ErrorCode::RateLimited,
        "D" => ErrorCode::DeadlineExceeded,
        other => panic!("`{other}` is not a letter of the table"),
    };
    let Err(error) = reply else { panic!("{told}") };
    assert_eq!(error.code, code, "{told}");
    assert!(!told.contains(MARK), "{told}");
    // "retryable meaningful": waiting helps against a rate and against nothing else here.
    assert_eq!(error.retryable, code == ErrorCode::RateLimited, "{told}");
    if code == ErrorCode::RateLimited {
        assert!(error.details["retry_after_ms"].as_u64().is_some_and(|wait| wait > 0), "{told}");
    }
}
