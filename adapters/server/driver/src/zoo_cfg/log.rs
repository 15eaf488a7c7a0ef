//! What a `zoo.cfg` says of the log.

use crate::zoo_cfg::entries::Entries;
use crate::zoo_cfg::findings::ConfigError;

/// What is logged, and how it is written. Nothing in this crate reads it: it is for the program that logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// What a line looks like (`quorate.log.format`, `text`).
    pub format: LogFormat,
    /// What is logged, such as `info` or `warn,quorate_driver=debug` (`quorate.log.level`): the program's own choice, if
    /// absent.
    pub level: Option<String>,
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, flat.
    Json,
}

impl LogSettings {
    pub(super) fn read(entries: &mut Entries<'_>) -> Result<Self, ConfigError> {
        let format = match entries.take("quorate.log.format") {
            None => LogFormat::default(),
            Some(entry) => match &*entry.value {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                _ => return Err(entry.value_error("text or json".to_owned())),
            },
        };
        Ok(Self { format, level: entries.take("quorate.log.level").map(|entry| entry.value) })
    }
}
