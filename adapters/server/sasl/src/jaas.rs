//! JAAS files: who may log in to a server, and as whom it logs in to others.
//!
//! ```text
//!   Server {
//!       org.apache.zookeeper.server.auth.DigestLoginModule required
//!       user_alice="her password"
//!       user_bob="his";
//!   };
//! ```
//!
//! Of JAAS there is no more than this: sections with ZooKeeper's `DigestLoginModule`. A section with another login module,
//! such as Kerberos's, is refused by its name when it is asked for; sections that are not asked for may be anything. Nothing
//! is expanded. What Java refuses is refused here.
//!
//! In the Java code: the JDK's `ConfigFile`, `DigestLoginModule`, `SaslServerCallbackHandler`.

mod reason;
mod words;

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::jaas::reason::DIGEST_MODULE;
pub use crate::jaas::reason::FILE_BYTES_MAX;
pub use crate::jaas::reason::{JaasError, JaasReason};
use crate::jaas::words::Words;
use crate::password::Password;
use crate::users::{Credentials, Users};

/// The sections of a JAAS file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jaas(BTreeMap<String, Vec<Module>>);

/// A login module of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Module {
    class: String,
    line: usize,
    options: Vec<(String, Password)>,
}

/// What one section says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    users: Users,
    own: Option<Credentials>,
}

impl Section {
    /// Who may log in: `user_NAME="password"`.
    #[must_use]
    pub const fn users(&self) -> &Users {
        &self.users
    }

    /// As whom one logs in oneself, if that is said: `username="…" password="…"`.
    #[must_use]
    pub const fn own(&self) -> Option<&Credentials> {
        self.own.as_ref()
    }
}

impl Jaas {
    /// Reads the text of a file, of at most [`FILE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    ///
    /// If Java would not read it.
    pub fn read(text: &str) -> Result<Self, JaasError> {
        if text.len() > FILE_BYTES_MAX {
            let reason = JaasReason::Length { length: text.len() };
            return Err(JaasError { line: 0, reason });
        }
        let mut words = Words::new(text)?;
        let mut sections = BTreeMap::new();
        while !words.is_over() {
            let line = words.line();
            let name = words.text("the name of a section")?;
            words.sign('{', "a { behind the name of a section")?;
            let mut modules = Vec::new();
            while !words.is_sign('}') {
                modules.push(module(&mut words)?);
            }
            words.sign('}', "a } behind login modules")?;
            words.sign(';', "a ; behind the } of a section")?;
            let shown = shown(&name);
            if sections.insert(name.as_str().to_owned(), modules).is_some() {
                return Err(JaasError { line, reason: JaasReason::Twice(shown) });
            }
        }
        Ok(Self(sections))
    }

    /// Whether there is a section of this name, whatever is in it.
    #[must_use]
    pub fn has(&self, section: &str) -> bool {
        self.0.contains_key(section)
    }

    /// What a section says.
    ///
    /// # Errors
    ///
    /// If there is none, or if it has another login module than ZooKeeper's for digests.
    pub fn section(&self, name: &str) -> Result<Section, JaasError> {
        let Some(modules) = self.0.get(name) else {
            return Err(JaasError { line: 0, reason: JaasReason::NoSection(shown(name)) });
        };
        let mut section = Section::default();
        for module in modules {
            let error = |reason| JaasError { line: module.line, reason };
            if module.class != DIGEST_MODULE {
                let (section, class) = (shown(name), shown(&module.class));
                return Err(error(JaasReason::Module { section, class }));
            }
            section.take(module).map_err(error)?;
        }
        Ok(section)
    }
}

impl Section {
    fn take(&mut self, module: &Module) -> Result<(), JaasReason> {
        let (mut user, mut password) = (None, None);
        for (name, value) in &module.options {
            if value.text().contains("${") {
                return Err(JaasReason::Property(shown(name)));
            }
            match &**name {
                "username" => user = Some(value.text().to_owned()),
                "password" => password = Some(value.clone()),
                name => {
                    let Some(user) = name.strip_prefix("user_") else { continue };
                    if user.is_empty() {
                        return Err(JaasReason::Incomplete("user_"));
                    }
                    self.users.add(user, value.clone());
                }
            }
        }
        match (user, password) {
            (Some(user), Some(password)) if !user.is_empty() => {
                self.own = Some(Credentials { user, password });
                Ok(())
            }
            (Some(_), _) => Err(JaasReason::Incomplete("username")),
            (None, _) => Ok(()),
        }
    }
}

/// `class flag option=value option="value";`
fn module(words: &mut Words<'_>) -> Result<Module, JaasError> {
    let line = words.line();
    let class = words.text("the class of a login module")?.as_str().to_owned();
    let at = words.line();
    let flag = words.text("required, requisite, sufficient or optional")?;
    if !FLAGS.iter().any(|known| flag.eq_ignore_ascii_case(known)) {
        let reason = JaasReason::Expected("required, requisite, sufficient or optional");
        return Err(JaasError { line: at, reason });
    }
    let mut options = Vec::new();
    while !words.is_sign(';') {
        let name = words.text("an option, or a ; behind the last")?.as_str().to_owned();
        words.sign('=', "a = behind the name of an option")?;
        let value =
            words.text("the value of an option, in double quotes if it is more than a word")?;
        options.push((name, Password::new(&value)));
    }
    words.sign(';', "a ; behind a login module")?;
    Ok(Module { class, line, options })
}

/// A name as errors show it, which has a bound.
fn shown(name: &str) -> String {
    name.chars().take(SHOWN_MAX).filter(|character| !character.is_control()).collect()
}

/// So much of a name is told.
const SHOWN_MAX: usize = 100;
const FLAGS: [&str; 4] = ["required", "requisite", "sufficient", "optional"];
