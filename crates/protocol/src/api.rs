//! The API that a run can call: the methods of CONTRACT §4, their parameters and results.
//!
//! [`parse`] reads parameters: unknown fields are ignored, `run_id` among them; an error names the invalid
//! field. What a [`Params`] checks beyond its shape, both sides check with the same code.
//!
//! Invariant: value sets are closed. A number below its range is an error; a `limit` or `top_k` above its
//! maximum is capped.

pub mod artifacts;
pub mod audit;
pub mod events;
mod fields;
pub mod harness;
pub mod history;
pub mod knowledge;
mod method;
pub mod models;
mod params;
pub mod platform;
pub mod state;
pub mod steering;
pub mod storage;
pub mod tools;

pub use fields::Moment;
pub use method::Method;
pub use params::{InvalidParams, Params, parse};

/// Maximum page size; a greater `limit` is capped.
pub const PAGE_LIMIT_MAX: u32 = 200;
/// Default page size.
pub const PAGE_LIMIT_DEFAULT: u32 = 50;
/// Maximum number of search hits; a greater `top_k` is capped.
pub const TOP_K_MAX: u32 = 100;
/// Longest search text.
pub const QUERY_BYTES_MAX: usize = 4096;
/// Most values in a filter such as `event_types`.
pub const FILTER_VALUES_MAX: usize = 100;
/// Longest lifetime of a value or an artifact: a hundred years.
pub const LIFETIME_S_MAX: i64 = 100 * 365 * 24 * 3600;
