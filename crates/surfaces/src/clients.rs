//! HTTP clients of surfaces, one for each way of connecting. They outlive a reload of the configuration.

use greenroom_outgoing::Outgoing;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub struct Clients {
    by_options: Mutex<HashMap<Outgoing, reqwest::Client>>,
}

impl Clients {
    pub(crate) fn client(&self, options: Outgoing) -> Result<reqwest::Client, reqwest::Error> {
        let mut clients = self.by_options.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&options) {
            return Ok(client.clone());
        }
        let client = options.build()?;
        clients.insert(options, client.clone());
        Ok(client)
    }
}
