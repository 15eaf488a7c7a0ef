//! The list: families of figures, each with what it is called in words and on the page.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::summary::Spread;

/// What a server has counted and measured at one moment, by family, in the order in which they were put in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub(crate) families: Vec<Family>,
}

/// Some figures of one name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Family {
    pub(crate) kind: Kind,
    /// Behind `zk_`; none if words do not tell it.
    pub(crate) word: Option<String>,
    /// None if the page does not tell it.
    pub(crate) page: Option<String>,
    pub(crate) help: String,
    pub(crate) samples: Vec<Sample>,
}

/// What can be done with a figure, in the order in which words tell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Text,
    Gauge,
    Counter,
    Summary(Detail),
}

/// One of the figures of a family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    One(Number),
    Spread(Spread),
    /// Of microseconds, which are told as seconds.
    Seconds(Spread),
}

/// How many quantiles a summary has (`MetricsContext.DetailLevel`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detail {
    /// The median on the page, none in words (`BASIC`).
    Basic,
    /// 0.5, 0.9 and 0.99 on the page; 0.5, 0.95, 0.99 and 0.999 in words (`ADVANCED`).
    Advanced,
}

/// The value of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Whole(i128),
    /// Another one, with at least one decimal when it is written.
    Real(f64),
    /// Words.
    Text(String),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            // As Java writes a double that is neither huge nor tiny.
            Self::Real(number) => write!(f, "{number:?}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

macro_rules! whole {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Number {
            fn from(number: $kind) -> Self {
                // No number of 64 bits is longer than one of 128.
                Self::Whole(number as i128)
            }
        })*
    };
}

whole!(bool, u8, u32, u64, i32, i64, usize);

impl From<u128> for Number {
    fn from(number: u128) -> Self {
        Self::Whole(i128::try_from(number).unwrap_or(i128::MAX))
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl Figures {
    /// Something that is no number, which only words tell.
    pub fn text(&mut self, name: &str, value: impl fmt::Display) {
        let value = Number::Text(value.to_string());
        self.add(Kind::Text, Some(name), None, name, value);
    }

    /// A gauge of ZooKeeper's.
    pub fn gauge(&mut self, name: &str, value: impl Into<Number>) {
        self.add(Kind::Gauge, Some(name), Some(name.to_owned()), name, value.into());
    }

    /// A counter of ZooKeeper's. It has no `_total` behind its name, as in ZooKeeper up to 3.9.
    pub fn counter(&mut self, name: &str, value: impl Into<Number>) {
        self.add(Kind::Counter, Some(name), Some(name.to_owned()), name, value.into());
    }

    /// A summary of ZooKeeper's.
    pub fn summary(&mut self, name: &str, detail: Detail, spread: &Spread) {
        let sample = Sample { labels: Vec::new(), value: Value::Spread(*spread) };
        self.put(Kind::Summary(detail), Some(name), Some(name.to_owned()), name, sample);
    }

    /// One summary of a family of ZooKeeper's that has one for each key (`SummarySet`): with the label `key` on the page, the
    /// key before the name in words. Those of one name are one family.
    pub fn summary_of(&mut self, name: &str, detail: Detail, key: &str, spread: &Spread) {
        let sample =
            Sample { labels: vec![("key", key.to_owned())], value: Value::Spread(*spread) };
        self.put(Kind::Summary(detail), Some(name), Some(name.to_owned()), name, sample);
    }

    /// A gauge of ours: `zk_name` in words, `quorate_name` on the page.
    pub fn own_gauge(&mut self, name: &str, help: &str, value: impl Into<Number>) {
        self.add(Kind::Gauge, Some(name), Some(format!("quorate_{name}")), help, value.into());
    }

    /// A counter of ours: `zk_name` in words, `quorate_name_total` on the page.
    pub fn own_counter(&mut self, name: &str, help: &str, value: impl Into<Number>) {
        let page = format!("quorate_{name}_total");
        self.add(Kind::Counter, Some(name), Some(page), help, value.into());
    }

    /// A gauge of the page alone, under this very name, with labels. Those of one name are one family.
    pub fn on_page(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&'static str, &str)],
        value: impl Into<Number>,
    ) {
        self.put(Kind::Gauge, None, Some(name.to_owned()), help, sample(labels, value.into()));
    }

    /// A counter of the page alone, under this very name, with labels. Those of one name are one family.
    pub fn counted_on_page(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&'static str, &str)],
        value: impl Into<Number>,
    ) {
        self.put(Kind::Counter, None, Some(name.to_owned()), help, sample(labels, value.into()));
    }

    /// How often connections did not come to be for what TLS says, or for its lack: of links between servers, of clients and
    /// for HTTP together.
    pub fn tls_failures(&mut self, plane: &str, side: &str, reason: &str, count: u64) {
        let help = "Links, clients and connections for HTTP that did not come to be for what TLS says, or for its lack.";
        let labels = [("plane", plane), ("side", side), ("reason", reason)];
        self.counted_on_page("quorate_tls_failures_total", help, &labels, count);
    }

    /// A summary of the page alone, under this very name, with labels: of microseconds, told as seconds. Those of one name
    /// are one family.
    pub fn seconds_on_page(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&'static str, &str)],
        micros: &Spread,
    ) {
        let sample = Sample { value: Value::Seconds(*micros), ..sample(labels, Number::Whole(0)) };
        self.put(Kind::Summary(Detail::Basic), None, Some(name.to_owned()), help, sample);
    }

    /// Puts all of another list behind this one.
    pub fn append(&mut self, other: Self) {
        for family in other.families {
            match self.begun(
                family.kind,
                family.word.as_deref(),
                family.page.as_deref(),
                &family.samples,
            ) {
                Some(begun) => begun.samples.extend(family.samples),
                None => self.families.push(family),
            }
        }
    }

    /// The family that these samples with labels are of, if there are some of it already. Whoever reads the page takes no
    /// family twice, and several parts of a server may count for one.
    fn begun(
        &mut self,
        kind: Kind,
        word: Option<&str>,
        page: Option<&str>,
        samples: &[Sample],
    ) -> Option<&mut Family> {
        let same = |family: &Family| {
            family.page.as_deref() == page && family.kind == kind && family.word.as_deref() == word
        };
        // What has no labels is put in once.
        let labelled = page.is_some() && samples.iter().any(|sample| !sample.labels.is_empty());
        let families = self.families.iter_mut().filter(|_| labelled);
        families.rev().find(|family| same(family))
    }

    fn add(
        &mut self,
        kind: Kind,
        word: Option<&str>,
        page: Option<String>,
        help: &str,
        of: Number,
    ) {
        self.put(kind, word, page, help, sample(&[], of));
    }

    fn put(
        &mut self,
        kind: Kind,
        word: Option<&str>,
        page: Option<String>,
        help: &str,
        sample: Sample,
    ) {
        let samples = vec![sample];
        if let Some(begun) = self.begun(kind, word, page.as_deref(), &samples) {
            return begun.samples.extend(samples);
        }
        let (word, help) = (word.map(str::to_owned), help.to_owned());
        self.families.push(Family { kind, word, page, help, samples });
    }
}

fn sample(labels: &[(&'static str, &str)], of: Number) -> Sample {
    let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Sample { labels, value: Value::One(of) }
}
