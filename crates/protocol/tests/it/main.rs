//! The contract: golden vectors, schemas, properties, and error pages.

mod api;
mod api_vectors;
mod delta;
mod error_pages;
mod manifest;
mod properties;
mod readable;
mod schemas;
mod vectors;
mod wire;
