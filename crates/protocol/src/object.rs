//! Rejects lists in place of objects: derived deserializers also accept a list of the fields in order.
//!
//! Invariant: everything parsed here was written with braces.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

pub(crate) fn from_str<'a, T: Deserialize<'a>>(json: &'a str) -> serde_json::Result<T> {
    serde_json::from_str(json).map(|Braced(value)| value)
}

pub(crate) fn from_slice<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    serde_json::from_slice(json).map(|Braced(value)| value)
}

pub(crate) fn one<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Braced::deserialize(from).map(|Braced(value)| value)
}

pub(crate) fn optional<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::<Braced<T>>::deserialize(from)?.map(|Braced(value)| value))
}

/// Null is the type's default.
pub(crate) fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(optional(from)?.unwrap_or_default())
}

pub(crate) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let values = Vec::<Braced<T>>::deserialize(from)?;
    Ok(values.into_iter().map(|Braced(value)| value).collect())
}

struct Braced<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Braced<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(BracedVisitor(PhantomData)).map(Braced)
    }
}

struct BracedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for BracedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}
