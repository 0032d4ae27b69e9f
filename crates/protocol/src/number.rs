//! Integers as other languages write them: `3` and `3.0` are the same number, `3.5` is invalid.
//!
//! Invariant: a parsed number fits `i64` exactly; a count is never negative.

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use std::fmt;

/// The largest integer up to which a double is exact.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// For optional integers.
pub(crate) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<Integer>::deserialize(from)?.map(|Integer(number)| number))
}

/// For optional counts.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    match whole(from)? {
        Some(number) if number < 0 => {
            Err(D::Error::invalid_value(Unexpected::Signed(number), &"a non-negative number"))
        }
        number => Ok(number),
    }
}

/// For optional sizes in bytes.
pub(crate) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(count(from)?.map(i64::unsigned_abs))
}

struct Integer(i64);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Of values that were read before, as those of tagged types, `deserialize_i64` takes integers only.
        from.deserialize_any(IntegerVisitor).map(Integer)
    }
}

struct IntegerVisitor;

impl Visitor<'_> for IntegerVisitor {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i64, E> {
        i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<i64, E> {
        if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
            Ok(number as i64)
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }
}
