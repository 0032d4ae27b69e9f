//! Tools that a plugin provides. (Tools that a run may call are in `tools.rs`.)
//!
//! Invariant: the input type describes a tool; an error in it ends only its own call and is returned with a code.

use futures_util::future::BoxFuture;
use greenroom_protocol::Object;
use greenroom_protocol::wire::{CallToolParams, CallToolResult, PluginTool, ToolRisk};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// An async function with a name, a description and a risk, which the host offers to models and runners as
/// `RUNNER.name`.
///
/// ```
/// use greenroom_sdk::{Plugin, Tool, ToolCtx, ToolError, ToolRisk, testing};
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Trip {
///     /// Where from, as an airport code.
///     from: String,
///     /// Where to.
///     to: String,
/// }
///
/// #[derive(Serialize)]
/// struct Distance {
///     km: u32,
/// }
///
/// async fn distance(trip: Trip, _ctx: ToolCtx) -> Result<Distance, ToolError> {
///     match (trip.from.as_str(), trip.to.as_str()) {
///         ("ZRH", "NRT") => Ok(Distance { km: 9576 }),
///         _ => Err(ToolError::new("no_route", "there is no such flight")),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let tool = Tool::new("distance", distance)
///     .description("The distance between two airports in kilometres")
///     .risk(ToolRisk::Read);
/// let plugin = Plugin::new("me", "flights").tool(tool);
/// let trip = serde_json::json!({ "from": "ZRH", "to": "NRT" });
/// let output = testing::call_tool(plugin, "distance", trip).await?;
/// assert_eq!(output.result["km"], 9576);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(crate) spec: PluginTool,
    run: Arc<Run>,
}

type Run =
    dyn Fn(Object, ToolCtx) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

impl Tool {
    /// A tool with input `I`. The JSON Schema of `I`, with the comments of its fields, describes its parameters. The
    /// default risk is [`ToolRisk::External`], the highest.
    ///
    /// When the host cancels the call, the future is dropped.
    pub fn new<I, O, F>(
        name: impl Into<String>,
        run: impl Fn(I, ToolCtx) -> F + Send + Sync + 'static,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: IntoToolOutput,
        F: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let run = Arc::new(run);
        Self {
            spec: PluginTool {
                name: name.into(),
                description: None,
                input_schema: schema_of::<I>(),
                output_schema: None,
                risk: ToolRisk::default(),
                timeout_s: None,
                extra: Object::new(),
            },
            run: Arc::new(move |parameters, ctx| {
                let run = run.clone();
                Box::pin(async move {
                    let input = serde_json::from_value(Value::Object(parameters))
                        .map_err(|error| ToolError::invalid_argument(error.to_string()))?;
                    run(input, ctx).await?.into_tool_output()
                })
            }),
        }
    }

    /// What it does and when to use it, for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.spec.description = Some(description.into());
        self
    }

    /// The risk of a call, by which the host decides whether approval is needed.
    pub fn risk(mut self, risk: ToolRisk) -> Self {
        self.spec.risk = risk;
        self
    }

    /// Timeout of a call in seconds; default: the host's own limit.
    pub fn timeout_s(mut self, seconds: u32) -> Self {
        self.spec.timeout_s = Some(seconds);
        self
    }

    /// Describes the result: `.output::<Weather>()`.
    pub fn output<O: JsonSchema>(mut self) -> Self {
        self.spec.output_schema = Some(schema_of::<O>());
        self
    }

    /// Sets the input schema by hand.
    pub fn input_schema(mut self, schema: Object) -> Self {
        self.spec.input_schema = schema;
        self
    }

    pub(crate) async fn call(&self, call: CallToolParams) -> Result<ToolOutput, ToolError> {
        let left = call.deadline_ms.map(Duration::from_millis);
        let ctx = ToolCtx {
            tool_call_id: call.tool_call_id,
            run_id: call.run_id,
            deadline: left.and_then(|left| Instant::now().checked_add(left)),
        };
        (self.run)(call.parameters, ctx).await
    }
}

#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCtx {
    /// The host's id of the call; the same when a call is repeated.
    pub tool_call_id: String,
    /// The run that the call is made for.
    pub run_id: Option<String>,
    deadline: Option<Instant>,
}

impl ToolCtx {
    /// The time until the host cancels the call, if known.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

/// The input of a tool without parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct NoInput {}

impl JsonSchema for NoInput {
    fn schema_name() -> Cow<'static, str> {
        "NoInput".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "properties": {} })
    }
}

/// The output of a tool: any serializable value, or this to add a text.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    result: Value,
    content: Option<String>,
}

impl ToolOutput {
    pub fn new(result: impl Into<Value>) -> Self {
        Self { result: result.into(), content: None }
    }

    /// Text for the model instead of the result's JSON.
    pub fn content(mut self, content: impl Into<String>) -> Self {
        self.content = Some(content.into());
        self
    }
}

/// Any serializable value, and [`ToolOutput`].
pub trait IntoToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

impl<T: Serialize> IntoToolOutput for T {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(serde_json::to_value(self)?))
    }
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

/// A failed call, reported to the model. Deliberately not a `std::error::Error`, so that every error converts to it
/// with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    pub code: String,
    pub message: String,
    /// Whether a retry may succeed.
    pub retryable: bool,
}

impl ToolError {
    /// A failure with a code of the tool, such as `weather.no_station`.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false }
    }

    /// A failure with the generic code `tool.error`.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new("tool.error", message)
    }

    /// Invalid parameters; the message says why, so that the model can correct them.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new("invalid_argument", message)
    }

    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let failure = crate::RunFailure::from(error);
        match failure.code == greenroom_protocol::error::run_code::ERROR {
            true => Self { retryable: failure.retryable, ..Self::error(failure.message) },
            false => {
                Self { code: failure.code, message: failure.message, retryable: failure.retryable }
            }
        }
    }
}

/// The result on the wire.
pub(crate) fn answer(outcome: Result<ToolOutput, ToolError>) -> CallToolResult {
    match outcome {
        Ok(ToolOutput { result, content }) => CallToolResult { result, content, error: None },
        Err(ToolError { code, message, retryable }) => CallToolResult {
            result: Value::Null,
            content: None,
            error: Some(
                serde_json::json!({ "code": code, "message": message, "retryable": retryable }),
            ),
        },
    }
}

/// Inlined where possible, because models read schemas without references best.
fn schema_of<T: JsonSchema>() -> Object {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.as_object().cloned().unwrap_or_default()
}
