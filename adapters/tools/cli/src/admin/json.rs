//! JSON whose keys stay in the order in which they were written.

use quorate_service::metrics::Number;
use serde::{Serialize, Serializer};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Whole(i128),
    Real(f64),
    Text(String),
    List(Vec<Self>),
    Object(Fields),
}

/// The fields of an object, in order.
pub(super) type Fields = Vec<(String, Json)>;

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(value) => to.serialize_bool(*value),
            Self::Whole(value) => match i64::try_from(*value) {
                Ok(value) => to.serialize_i64(value),
                Err(_) => to.serialize_u64(u64::try_from(*value).unwrap_or(u64::MAX)),
            },
            Self::Real(value) => to.serialize_f64(*value),
            Self::Text(value) => to.serialize_str(value),
            Self::List(values) => to.collect_seq(values),
            Self::Object(fields) => to.collect_map(fields.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl From<Number> for Json {
    fn from(number: Number) -> Self {
        match number {
            Number::Whole(number) => Self::Whole(number),
            Number::Real(number) => Self::Real(number),
            Number::Text(text) => Self::Text(text),
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

macro_rules! whole {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Json {
            fn from(number: $kind) -> Self {
                Self::Whole(number as i128)
            }
        })*
    };
}

whole!(i32, i64, u16, u32, u64, usize);

impl<T: Into<Self>> From<Vec<T>> for Json {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}
