//! What a run may ask its host for: the methods of CONTRACT §4, their parameters and their answers.
//!
//! Parameters are read with [`parse`]: fields we do not know are passed over, `run_id` among them; a field
//! that is not as it should be is named in the error. What a [`Params`] checks beyond its shape, both sides
//! check with the same code.
//!
//! Invariant: value sets are closed. A number below its range is an error; a `limit` or `top_k` above its
//! maximum is taken as the maximum.

pub mod artifacts;
pub mod audit;
pub mod events;
mod fields;
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

/// Most items that one page holds; a greater `limit` is taken as this.
pub const PAGE_LIMIT_MAX: u32 = 200;
/// Items of a page when no `limit` is given.
pub const PAGE_LIMIT_DEFAULT: u32 = 50;
/// Most hits that one search gives; a greater `top_k` is taken as this.
pub const TOP_K_MAX: u32 = 100;
/// Longest text to search for.
pub const QUERY_BYTES_MAX: usize = 4096;
/// Most values in a filter such as `event_types`.
pub const FILTER_VALUES_MAX: usize = 100;
/// Longest lifetime that a value or an artifact may be given: a hundred years.
pub const LIFETIME_S_MAX: i64 = 100 * 365 * 24 * 3600;
