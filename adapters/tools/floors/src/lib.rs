//! Holds the floors of a crate: a module uses what stands below it, and nothing else.
//!
//! A plan is a table of modules and their [places](Place); [`survey`] tells what in the sources is against it. They are
//! read token by token, so that no way of naming a module escapes: `use` declarations, types, expressions, patterns,
//! the inside of macros, test modules. Comments and documentation may point anywhere.
//!
//! What a module does with what it uses is not looked at; that is what reviews are for. The plans of quorate's crates
//! are its tests.

mod plan;
mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::plan::{book, circle, judge, place, planned};
use crate::reader::{Use, uses};

pub use crate::plan::Place;
pub use crate::reader::Module;

/// What was read, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Survey {
    /// How many uses of one module by another were read.
    pub uses: usize,
    /// Each place that is against the plan, with its module and line.
    pub complaints: Vec<String>,
}

/// Why sources could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SourcesError {
    /// The system refused it.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A module has a file and a `mod.rs`, or a crate both `lib.rs` and `main.rs`.
    #[error("{} is a second source of its module", .0.display())]
    Twice(PathBuf),
    /// A name is no UTF-8.
    #[error("{} is no name of a module", .0.display())]
    Name(PathBuf),
}

/// All sources under a folder `src`, by module; `lib.rs` and `main.rs` are the root.
///
/// # Errors
///
/// If a file cannot be read, or is no source of one module.
pub fn sources(root: &Path) -> Result<BTreeMap<Module, String>, SourcesError> {
    let refused = |path: &Path| {
        let path = path.to_owned();
        |error| SourcesError::Read { path, error }
    };
    let mut sources = BTreeMap::new();
    let mut folders = vec![(root.to_owned(), Module::new())];
    while let Some((folder, module)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(refused(&folder))? {
            let path = entry.map_err(refused(&folder))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let stem = stem.ok_or_else(|| SourcesError::Name(path.clone()))?;
            let mut module = module.clone();
            if path.is_dir() {
                module.push(stem.to_owned());
                folders.push((path, module));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                if !["lib", "main", "mod"].contains(&stem) {
                    module.push(stem.to_owned());
                }
                let source = fs::read_to_string(&path).map_err(refused(&path))?;
                if sources.insert(module, source).is_some() {
                    return Err(SourcesError::Twice(path));
                }
            }
        }
    }
    Ok(sources)
}

/// Everything that is wrong with these sources. `standing` are uses that the plan forbids and that stand for now; one that
/// is no longer there is a complaint.
pub fn survey(
    sources: &BTreeMap<Module, String>,
    plan: &[(&str, Place)],
    standing: &[(&str, &str)],
) -> Survey {
    let mut survey = Survey::default();
    let mut edges = BTreeMap::<String, BTreeSet<String>>::new();
    let mut idle = standing.to_vec();
    for (module, source) in sources {
        let name = module.join("::");
        if !module.is_empty() && place(plan, &name).is_none() {
            survey.complaints.push(format!("{name} has no place in the plan"));
            continue;
        }
        let (uses, tricks) = match uses(module, source) {
            Ok(read) => read,
            Err(error) => {
                survey.complaints.push(format!("{name} is no Rust: {error}"));
                continue;
            }
        };
        survey.uses += uses.len();
        let at = |line: usize, what: &str| {
            format!("{}, line {line}: {what}", if name.is_empty() { "the root" } else { &name })
        };
        let own = book(plan, &name);
        survey.complaints.extend(tricks.iter().map(|(line, what)| at(*line, what)));
        // The root documents and re-exports; it may name everything.
        if module.is_empty() {
            continue;
        }
        for Use { line, text, path } in uses {
            let planned = planned(plan, &path);
            let target = book(plan, &planned);
            if standing.contains(&(own, target)) {
                idle.retain(|allowed| *allowed != (own, target));
                continue;
            }
            if target != own && !target.is_empty() {
                edges.entry(own.to_owned()).or_default().insert(target.to_owned());
            }
            if let Err(why) = judge(plan, own, target) {
                survey.complaints.push(at(line, &format!("`{text}`: {why}")));
            }
        }
    }
    survey
        .complaints
        .extend(circle(&edges).map(|names| format!("a circle: {}", names.join(" → "))));
    let idle = idle.iter().map(|(from, to)| format!("{from} no longer uses {to}: strike it out"));
    survey.complaints.extend(idle);
    survey
}
