//! The page that Prometheus scrapes, in the text format 0.0.4.
//!
//! As ZooKeeper up to 3.9 writes it (`PrometheusMetricsProvider`): the names of counters end as they are, help repeats the
//! name, a summary without observations in its window has `NaN`. The crate `prometheus-client` does neither of it, so the
//! text is written here.

use alloc::string::String;
use core::fmt::Write as _;

use crate::figures::{Detail, Family, Figures, Kind, Number, Value};
use crate::summary::Spread;

/// What the page is, for the header `Content-Type`.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Figures {
    /// The page: all families that it tells, or those of these names (`?name[]=`).
    pub fn page(&self, only: &[&str]) -> String {
        let mut text = String::new();
        for family in &self.families {
            let Some(name) = family.page.as_deref().filter(|name| is_name(name)) else { continue };
            if only.is_empty() || only.contains(&name) {
                family.write(name, &mut text);
            }
        }
        text
    }
}

impl Family {
    /// Writing to a string cannot fail.
    fn write(&self, name: &str, text: &mut String) {
        let kind = match self.kind {
            Kind::Text => return,
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Summary(_) => "summary",
        };
        let _ = write!(text, "# HELP {name} ");
        escape(&self.help, false, text);
        let _ = write!(text, "\n# TYPE {name} {kind}\n");
        for sample in &self.samples {
            let labels = &sample.labels[..];
            match &sample.value {
                Value::One(number) => line(text, name, "", labels, None, number),
                Value::Spread(spread) => self.spread(name, spread, labels, Number::from, text),
                Value::Seconds(micros) => self.spread(name, micros, labels, seconds, text),
            }
        }
    }

    /// Quantiles and the sum in some unit.
    fn spread(
        &self,
        name: &str,
        spread: &Spread,
        labels: &[(&'static str, String)],
        unit: impl Fn(u64) -> Number,
        text: &mut String,
    ) {
        let told: &[usize] = match self.kind {
            Kind::Summary(Detail::Advanced) => &[0, 1, 3],
            Kind::Summary(Detail::Basic) | Kind::Text | Kind::Gauge | Kind::Counter => &[0],
        };
        for &at in told {
            let value = match spread.quantiles {
                Some(quantiles) => unit(quantiles[at]),
                None => Number::Real(f64::NAN),
            };
            line(text, name, "", labels, Some(Spread::QUANTILES[at]), &value);
        }
        line(text, name, "_count", labels, None, &spread.count.into());
        line(text, name, "_sum", labels, None, &unit(spread.sum));
    }
}

/// Of microseconds.
#[allow(clippy::cast_precision_loss, reason = "a double on the page")]
fn seconds(micros: u64) -> Number {
    Number::Real(micros as f64 / 1e6)
}

/// One sample, as a double: that is what it is to Prometheus.
fn line(
    text: &mut String,
    name: &str,
    behind: &str,
    labels: &[(&'static str, String)],
    quantile: Option<&str>,
    number: &Number,
) {
    text.push_str(name);
    text.push_str(behind);
    let mut before = '{';
    let quantile = quantile.map(|quantile| ("quantile", quantile));
    for (label, value) in labels.iter().map(|(l, v)| (*l, v.as_str())).chain(quantile) {
        let _ = write!(text, "{before}{label}=\"");
        escape(value, true, text);
        text.push('"');
        before = ',';
    }
    if before == ',' {
        text.push('}');
    }
    let _ = match number {
        Number::Whole(whole) => writeln!(text, " {whole}.0"),
        Number::Real(real) => writeln!(text, " {real:?}"),
        // No sample.
        Number::Text(_) => writeln!(text, " NaN"),
    };
}

/// Escapes help, or the value of a label.
fn escape(value: &str, quotes: bool, text: &mut String) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if quotes => text.push_str("\\\""),
            other => text.push(other),
        }
    }
}

/// Whether Prometheus takes it for a name.
fn is_name(name: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_:".contains(character);
    name.chars().all(fits) && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())
}
