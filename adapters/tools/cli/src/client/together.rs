//! A multi: the commands of a file, all or none.

use zookeeper_client::{Client, MultiWriteError, MultiWriteResult, MultiWriter};

use super::command::{Delete, Part, Set};
use super::content;
use super::error::ClientError;
use super::outcome::Outcome;

/// A line that is a part.
struct Numbered<'a> {
    line: usize,
    text: &'a str,
    part: Part,
}

/// Reads all lines before anything is sent.
pub(super) async fn carry_out(client: &Client, file: &[u8]) -> Result<Outcome, ClientError> {
    let text = String::from_utf8_lossy(file);
    let mut parts = Vec::new();
    for (text, line) in text.lines().zip(1..) {
        let at = |source| ClientError::Line { line, source: Box::new(source) };
        if let Some(part) = Part::parse(text).map_err(at)? {
            parts.push(Numbered { line, text: text.trim(), part });
        }
    }
    let mut writer = client.new_multi_writer();
    for Numbered { line, part, .. } in &parts {
        add(&mut writer, part)
            .map_err(|source| ClientError::Line { line: *line, source: Box::new(source) })?;
    }
    match writer.commit().await {
        Ok(results) => Ok(Outcome::Multi { done: done(parts, results) }),
        Err(MultiWriteError::OperationFailed { index, source: refusal }) => {
            let (line, text) = parts.get(index).map_or((0, ""), |part| (part.line, part.text));
            Err(ClientError::Multi { line, text: text.to_owned(), refusal })
        }
        Err(MultiWriteError::RequestFailed { source: refusal }) => {
            Err(ClientError::Refused { subject: "the multi".to_owned(), refusal })
        }
    }
}

fn add(writer: &mut MultiWriter<'_>, part: &Part) -> Result<(), ClientError> {
    let (path, added) = match part {
        Part::Create(create) if create.parents => {
            return Err(ClientError::NotTogether("create -p"));
        }
        Part::Create(create) => {
            let data = content::data(create.file.as_deref(), create.data.as_deref())?;
            (&create.path, writer.add_create(&create.path, &data, &content::options(create)))
        }
        Part::Set(Set { version, file, path, data }) => {
            let data = content::data(file.as_deref(), data.as_deref())?;
            (path, writer.add_set_data(path, &data, *version))
        }
        Part::Delete(Delete { recursive: true, .. }) => {
            return Err(ClientError::NotTogether("delete -r"));
        }
        Part::Delete(Delete { version, path, .. }) => (path, writer.add_delete(path, *version)),
        Part::Check { version, path } => (path, writer.add_check_version(path, *version)),
    };
    added.map_err(|refusal| ClientError::Refused { subject: path.clone(), refusal })
}

/// What came of each part.
fn done(parts: Vec<Numbered<'_>>, results: Vec<MultiWriteResult>) -> Vec<Outcome> {
    let outcome = |(Numbered { part, .. }, result)| match (part, result) {
        (_, MultiWriteResult::Create { path, .. }) => Some(Outcome::Create { path }),
        (Part::Set(set), MultiWriteResult::SetData { stat }) => {
            Some(Outcome::Set { path: set.path, stat: stat.into() })
        }
        (Part::Delete(delete), MultiWriteResult::Delete) => {
            Some(Outcome::Delete { path: delete.path, nodes: 1 })
        }
        (Part::Check { path, .. }, MultiWriteResult::Check) => Some(Outcome::Check { path }),
        // Not what was asked: the library has checked that there are as many.
        _ => None,
    };
    parts.into_iter().zip(results).filter_map(outcome).collect()
}
