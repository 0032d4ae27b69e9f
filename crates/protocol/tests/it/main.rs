//! The contract, tested from outside: golden vectors, schemas, properties, and the pages behind each code.

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
