//! Whole numbers as other languages write them: `3` and `3.0` are the same number, `3.5` is not one.
//!
//! Invariant: what is read fits `i64` exactly; a count is never negative.

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use std::fmt;

/// The largest whole number up to which a double is exact.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// For optional fields that may lie before 1970.
pub(crate) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<Whole>::deserialize(from)?.map(|Whole(number)| number))
}

/// For optional fields that count something.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    match whole(from)? {
        Some(number) if number < 0 => {
            Err(D::Error::invalid_value(Unexpected::Signed(number), &"a number from 0 on"))
        }
        number => Ok(number),
    }
}

/// For optional sizes in bytes.
pub(crate) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(count(from)?.map(i64::unsigned_abs))
}

struct Whole(i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_i64(WholeVisitor).map(Whole)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
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
