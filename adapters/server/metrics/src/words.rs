//! The lines of `mntr`, as ZooKeeper's default provider writes them (`DefaultMetricsProvider`, `AvgMinMaxCounter`).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::figures::{Detail, Figures, Kind, Number, Value};
use crate::summary::Spread;

impl Figures {
    /// All of it as lines: `zk_name`, a tab, the value.
    pub fn words(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.lines() {
            // A line is a line, whatever a value holds. Writing to a string cannot fail.
            let _ = writeln!(text, "zk_{name}\t{}", format!("{value}").replace(['\n', '\r'], " "));
        }
        text
    }

    /// The same as names, without `zk_`, and values: what is no number first, then gauges, counters and summaries.
    pub fn lines(&self) -> Vec<(String, Number)> {
        let mut families: Vec<_> = self.families.iter().collect();
        families.sort_by_key(|family| match family.kind {
            // The detail does not matter.
            Kind::Summary(_) => Kind::Summary(Detail::Basic),
            kind @ (Kind::Text | Kind::Gauge | Kind::Counter) => kind,
        });
        let mut lines = Vec::new();
        for family in families {
            let Some(name) = &family.word else { continue };
            for sample in &family.samples {
                match &sample.value {
                    Value::One(value) => lines.push((name.clone(), value.clone())),
                    Value::Spread(spread) => {
                        let advanced = family.kind == Kind::Summary(Detail::Advanced);
                        let key = sample.labels.first().map(|(_, key)| format!("{key}_{name}"));
                        let name = key.as_ref().unwrap_or(name);
                        spread_lines(name, spread, advanced, &mut lines);
                    }
                    // It has no name here.
                    Value::Seconds(_) => {}
                }
            }
        }
        lines
    }
}

fn spread_lines(name: &str, spread: &Spread, advanced: bool, lines: &mut Vec<(String, Number)>) {
    let mut line = |part: &str, value: Number| lines.push((format!("{part}_{name}"), value));
    line("avg", Number::Real(average(spread)));
    line("min", spread.min.into());
    line("max", spread.max.into());
    line("cnt", spread.count.into());
    line("sum", spread.sum.into());
    if advanced {
        let [p50, _, p95, p99, p999] = spread.quantiles.unwrap_or_default();
        for (part, value) in [("p50", p50), ("p95", p95), ("p99", p99), ("p999", p999)] {
            line(part, value.into());
        }
    }
}

/// With at most four decimals.
#[allow(clippy::cast_precision_loss, reason = "an average for people")]
pub(crate) fn average(spread: &Spread) -> f64 {
    spread.average_e4() as f64 / 1e4
}
