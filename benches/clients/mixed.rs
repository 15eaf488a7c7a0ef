//! Whether writes become slower when one of Java's servers is replaced by one of ours: three ensembles run at once, and are
//! loaded in turn.

use std::time::Duration;

use crate::Outcome;
use crate::ensemble::{Ensemble, Kind};
use crate::load::{LOADS, Load};

/// Prints the medians of each, and of what they are to those of Java's alone in the same round.
pub(crate) fn measure(rounds: usize, seconds: Duration, only: Option<&str>) -> Outcome<()> {
    let kinds = [Kind::Java, Kind::UnderJava, Kind::OverJava];
    let mut ensembles = Vec::new();
    for kind in kinds {
        let ensemble = Ensemble::start(kind)?;
        if ensemble.is_led_by_ours()? != (kind == Kind::OverJava) {
            return Err(format!("{kind:?}: another leads").into());
        }
        // Warmed up.
        LOADS[0].run(&ensemble, seconds)?;
        ensembles.push(ensemble);
    }
    let asked = |load: &&Load| only.is_none_or(|only| load.name.contains(only));
    for load in LOADS[..2].iter().filter(asked) {
        println!("{}", load.name);
        let mut figures = kinds.map(|_| Vec::new());
        for _ in 0..rounds {
            for (ensemble, figures) in ensembles.iter().zip(&mut figures) {
                let ran = load.run(ensemble, seconds)?;
                figures.push((ran.writes_a_second(), ran.write_p50()));
            }
        }
        for (kind, of_kind) in kinds.iter().zip(&figures) {
            let rate = median(of_kind.iter().map(|(rate, _)| *rate));
            let p50 = median(of_kind.iter().map(|(_, p50)| *p50));
            let pairs = of_kind.iter().zip(&figures[0]);
            let to_java = median(pairs.map(|((rate, _), (java, _))| rate / java));
            let kind = format!("{kind:?}");
            println!("  {kind:10} {rate:7.0}/s, p50 {p50:6.0} µs, {to_java:.2} times Java's rate");
        }
    }
    Ok(())
}

fn median(all: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<_> = all.collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}
