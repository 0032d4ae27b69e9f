//! What runs showed of their work: reasoning, activities, steps, sub-agents.

use crate::host::Host;
use greenroom_store::sql::Tx;
use greenroom_store::types::ResultRecord;
use greenroom_store::{StoreError, reads};
use std::collections::HashMap;

/// Results of one run that are read.
const RESULTS_MAX: usize = 20_000;

impl Host {
    /// The stored results of those of these runs that showed work, by run.
    pub async fn results_with_work(
        &self,
        run_ids: Vec<String>,
    ) -> Result<HashMap<String, Vec<ResultRecord>>, StoreError> {
        let read = move |tx: &mut dyn Tx| {
            let mut found = HashMap::new();
            for run_id in &run_ids {
                if reads::results::shows_work(tx, run_id)? {
                    let records = reads::results::page(tx, run_id, 0, RESULTS_MAX)?;
                    found.insert(run_id.clone(), records);
                }
            }
            Ok(found)
        };
        self.store().read(read).await
    }
}
