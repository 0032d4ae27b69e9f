//! Checks `vectors/`: valid values are parsed, serialized and validated against their schema; invalid ones are
//! rejected.
//!
//! Invariant: a structure that has a schema has at least one valid vector.

use greenroom_protocol::payload::Payload;
use greenroom_protocol::result::kind;
use greenroom_protocol::{AgentRunnerManifest, NewEvent, schema};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    r#type: String,
    why: String,
    value: Value,
    expect: Option<Value>,
    #[serde(default)]
    outside_schema: bool,
}

#[test]
fn valid_vectors_survive_a_round_trip() {
    for (path, vector) in vectors("valid") {
        let written = reread(&vector.r#type, &vector.value)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let expected = vector.expect.as_ref().unwrap_or(&vector.value);
        assert_eq!(&written, expected, "{}: {}", path.display(), vector.why);
        let again = reread(&vector.r#type, &written).expect("what was written is read again");
        assert_eq!(again, written, "{}: a second round trip changes nothing", path.display());
    }
}

#[test]
fn invalid_vectors_are_rejected() {
    for (path, vector) in vectors("invalid") {
        assert!(vector.expect.is_none(), "{}: nothing comes out of it", path.display());
        if let Ok(written) = reread(&vector.r#type, &vector.value) {
            panic!("{}: {}, but it was read as {written}", path.display(), vector.why);
        }
    }
}

#[test]
fn valid_vectors_pass_their_schema_before_and_after() {
    let validators: BTreeMap<&str, jsonschema::Validator> = schema::all()
        .into_iter()
        .map(|(name, schema)| {
            (name, jsonschema::validator_for(schema.as_value()).expect("the schema is a schema"))
        })
        .collect();
    for (path, vector) in vectors("valid") {
        let validator = &validators[vector.r#type.as_str()];
        let written = vector.expect.as_ref().unwrap_or(&vector.value);
        let read = (!vector.outside_schema).then_some(&vector.value);
        for value in read.into_iter().chain([written]) {
            if let Err(error) = validator.validate(value) {
                panic!("{}: {error} at {}", path.display(), error.instance_path());
            }
        }
    }
}

#[test]
fn every_schema_has_a_valid_vector() {
    let shown: BTreeSet<String> =
        vectors("valid").into_iter().map(|(_, vector)| vector.r#type).collect();
    let missing: Vec<&str> =
        schema::all().into_iter().map(|(name, _)| name).filter(|n| !shown.contains(*n)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// A value parsed as `name` with all checks and serialized again.
fn reread(name: &str, value: &Value) -> Result<Value, String> {
    let text = value.to_string();
    match name {
        "AgentRunnerManifest" => {
            AgentRunnerManifest::parse(&text).map_err(|e| e.to_string()).map(|m| write(&m))
        }
        "NewEvent" => {
            NewEvent::parse(text.as_bytes()).map_err(|e| e.to_string()).map(|event| write(&event))
        }
        "MessageDelta" => reread_payload(kind::MESSAGE_DELTA, &text),
        "MessageCompleted" => reread_payload(kind::MESSAGE_COMPLETED, &text),
        "ToolCallStarted" => reread_payload(kind::TOOL_CALL_STARTED, &text),
        "ToolCallCompleted" => reread_payload(kind::TOOL_CALL_COMPLETED, &text),
        "ArtifactCreated" => reread_payload(kind::ARTIFACT_CREATED, &text),
        "StateUpdated" => reread_payload(kind::STATE_UPDATED, &text),
        "ActionRequested" => reread_payload(kind::ACTION_REQUESTED, &text),
        "RunCompleted" => reread_payload(kind::RUN_COMPLETED, &text),
        "RunFailed" => reread_payload(kind::RUN_FAILED, &text),
        "AgentAPIError" => reread_as::<greenroom_protocol::AgentAPIError>(&text),
        "AgentRunContext" => reread_as::<greenroom_protocol::AgentRunContext>(&text),
        "AgentRunRequest" => reread_as::<greenroom_protocol::AgentRunRequest>(&text),
        "AgentRunResult" => reread_as::<greenroom_protocol::AgentRunResult>(&text),
        "CallToolParams" => reread_as::<greenroom_protocol::wire::CallToolParams>(&text),
        "CallToolResult" => greenroom_protocol::wire::CallToolResult::parse(&text)
            .map_err(|error| error.to_string())
            .map(|result| write(&result)),
        "CancelParams" => reread_as::<greenroom_protocol::wire::CancelParams>(&text),
        "EventAnswer" => reread_as::<greenroom_protocol::EventAnswer>(&text),
        "InitializeParams" => reread_as::<greenroom_protocol::wire::InitializeParams>(&text),
        "InitializeResult" => reread_as::<greenroom_protocol::wire::InitializeResult>(&text),
        "InteractionRequest" => reread_as::<greenroom_protocol::InteractionRequest>(&text),
        "InteractionSubmission" => reread_as::<greenroom_protocol::InteractionSubmission>(&text),
        "ListAgentRunnersResponse" => {
            reread_as::<greenroom_protocol::ListAgentRunnersResponse>(&text)
        }
        "ListToolsResult" => reread_as::<greenroom_protocol::wire::ListToolsResult>(&text),
        "PluginTool" => greenroom_protocol::wire::PluginTool::parse(&text)
            .map_err(|error| error.to_string())
            .map(|tool| write(&tool)),
        "RecordLink" => reread_as::<greenroom_protocol::records::RecordLink>(&text),
        "RecordOp" => reread_as::<greenroom_protocol::records::RecordOp>(&text),
        "RecordView" => reread_as::<greenroom_protocol::records::RecordView>(&text),
        "RequestCancelParams" => reread_as::<greenroom_protocol::wire::RequestCancelParams>(&text),
        "RpcError" => reread_as::<greenroom_protocol::wire::RpcError>(&text),
        "RunView" => reread_as::<greenroom_protocol::RunView>(&text),
        "StreamItemParams" => reread_as::<greenroom_protocol::wire::StreamItemParams>(&text),
        "TranscriptItem" => reread_as::<greenroom_protocol::TranscriptItem>(&text),
        other => crate::api_vectors::reread(other, &text),
    }
}

pub(crate) fn reread_as<T: DeserializeOwned + Serialize>(text: &str) -> Result<Value, String> {
    serde_json::from_str::<T>(text).map_err(|error| error.to_string()).map(|value| write(&value))
}

fn reread_payload(kind: &str, text: &str) -> Result<Value, String> {
    match Payload::parse(kind, Some(text)).map_err(|error| error.to_string())? {
        Payload::MessageDelta(data) => Ok(write(&data)),
        Payload::MessageCompleted(data) => Ok(write(&data)),
        Payload::ToolCallStarted(data) => Ok(write(&data)),
        Payload::ToolCallCompleted(data) => Ok(write(&data)),
        Payload::ArtifactCreated(data) => Ok(write(&data)),
        Payload::StateUpdated(data) => Ok(write(&data)),
        Payload::ActionRequested(data) => Ok(write(&data)),
        Payload::RunCompleted(data) => Ok(write(&data)),
        Payload::RunFailed(data) => Ok(write(&data)),
        Payload::Unknown => Err("not acted on".to_owned()),
    }
}

pub(crate) fn write<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("protocol values can be written")
}

fn vectors(folder: &str) -> Vec<(PathBuf, Vector)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(folder);
    let mut vectors = Vec::new();
    for types in fs::read_dir(&root).expect("the folder of vectors exists") {
        let types = types.expect("the folder can be listed").path();
        for case in fs::read_dir(&types).expect("a folder per type") {
            let path = case.expect("the folder can be listed").path();
            let text = fs::read_to_string(&path).expect("the vector can be read");
            let vector: Vector = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(types.ends_with(&vector.r#type), "{}: lies elsewhere", path.display());
            vectors.push((path, vector));
        }
    }
    assert!(vectors.len() > 60, "{folder}: only {} vectors", vectors.len());
    vectors
}
