//! The host as programs outside see it: HTTP, server-sent events, webhooks.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod access;
mod agents;
mod bad_input;
mod borders;
mod browser;
mod connections;
mod deliveries;
mod forgery;
mod interface;
mod openapi;
mod origins;
mod pages;
mod people;
mod proxy;
mod senders;
mod sessions;
mod sse;
mod stage;
mod surfaces;
mod telemetry;
mod views;
mod webhook;
