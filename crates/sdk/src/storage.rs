//! Storage: blobs per area, stored by the host (CONTRACT §4).
//!
//! Invariant: no state between calls; bytes are returned unchanged.

use crate::bytes::{decode, encode};
use crate::{RunCtx, local};
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::Method;
use greenroom_protocol::api::state::Deleted;
use greenroom_protocol::api::storage::{
    StorageDeleteParams, StorageGetParams, StorageListParams, StoragePage, StorageSetParams,
    StorageValue, StorageWritten,
};
use greenroom_protocol::manifest::StorageArea;

/// The methods `storage.*`, for one run.
pub struct StorageApi<'a>(pub(crate) &'a RunCtx);

impl StorageApi<'_> {
    /// The bytes of a key; `None` if it is missing.
    pub async fn get(
        &self,
        area: StorageArea,
        key: impl Into<String>,
    ) -> Result<Option<Vec<u8>>, AgentAPIError> {
        local::area(self.0, area)?;
        let found: StorageValue = self.0.ask(&StorageGetParams { area, key: key.into() }).await?;
        found.data_base64.map(|text| decode(Method::StorageGet, &text)).transpose()
    }

    /// Keeps bytes under a key, in place of what was there.
    pub async fn set(
        &self,
        area: StorageArea,
        key: impl Into<String>,
        bytes: &[u8],
    ) -> Result<(), AgentAPIError> {
        local::area(self.0, area)?;
        let value = encode(Method::StorageSet, bytes)?;
        let params = StorageSetParams { area, key: key.into(), value };
        let StorageWritten { .. } = self.0.ask(&params).await?;
        Ok(())
    }

    /// Removes a key; false if it was missing.
    pub async fn delete(
        &self,
        area: StorageArea,
        key: impl Into<String>,
    ) -> Result<bool, AgentAPIError> {
        local::area(self.0, area)?;
        let result: Deleted = self.0.ask(&StorageDeleteParams { area, key: key.into() }).await?;
        Ok(result.deleted)
    }

    /// The first keys of an area with this prefix, with their sizes.
    pub async fn list(
        &self,
        area: StorageArea,
        prefix: impl Into<String>,
    ) -> Result<StoragePage, AgentAPIError> {
        let prefix = Some(prefix.into());
        self.list_with(StorageListParams { area, prefix, cursor: None, limit: None }).await
    }

    /// Keys of an area; `cursor` continues after an earlier page.
    pub async fn list_with(&self, params: StorageListParams) -> Result<StoragePage, AgentAPIError> {
        local::area(self.0, params.area)?;
        self.0.ask(&params).await
    }
}
