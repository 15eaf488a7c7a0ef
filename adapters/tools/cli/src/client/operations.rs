//! Commands as requests: one function for each that is more than one request, the others in a table.

use zookeeper_client::{Acls, Client, CreateMode, Error as Refusal};

use super::acl;
use super::command::{Command, Create, Delete, Set};
use super::content;
use super::error::{ClientError, on};
use super::outcome::{Data, Outcome, Page};
use super::secret::Secret;
use super::together;
use super::watching;

/// Carries out a command. Watching goes on until the caller gives it up, and says what it sees itself.
pub(super) async fn carry_out(
    client: &Client,
    command: Command,
    page: Page,
) -> Result<Outcome, ClientError> {
    Ok(match command {
        Command::Ls { stat: with, path } => {
            let (mut children, stat) = client.get_children(&path).await.map_err(on(&path))?;
            children.sort_unstable();
            Outcome::Ls { path, children, stat: with.then(|| stat.into()) }
        }
        Command::Get { stat: with, path } => {
            let (data, stat) = client.get_data(&path).await.map_err(on(&path))?;
            Outcome::Get { path, data: Data::new(data), stat: with.then(|| stat.into()) }
        }
        Command::Create(wanted) => create(client, wanted).await?,
        Command::Set(Set { version, file, path, data }) => {
            let data = content::data(file.as_deref(), data.as_deref())?;
            let stat = client.set_data(&path, &data, version).await.map_err(on(&path))?;
            Outcome::Set { path, stat: stat.into() }
        }
        Command::Delete(Delete { version, recursive: false, path }) => {
            client.delete(&path, version).await.map_err(on(&path))?;
            Outcome::Delete { path, nodes: 1 }
        }
        Command::Delete(Delete { recursive: true, path, .. }) | Command::Deleteall { path } => {
            let nodes = delete_all(client, &path).await?;
            Outcome::Delete { path, nodes }
        }
        Command::Stat { path } => {
            let stat = client.check_stat(&path).await.map_err(on(&path))?;
            let stat = stat.ok_or(Refusal::NoNode).map_err(on(&path))?;
            Outcome::Stat { path, stat: stat.into() }
        }
        Command::Watch { recursive, path } => {
            watching::watch(client, &path, recursive, page).await?
        }
        Command::Multi { file } => together::carry_out(client, &content::file(&file)?).await?,
        Command::GetAcl { stat: with, path } => {
            let (acl, stat) = client.get_acl(&path).await.map_err(on(&path))?;
            let acl = acl.iter().map(acl::shown).collect();
            Outcome::GetAcl { path, acl, stat: with.then(|| stat.into()) }
        }
        Command::SetAcl { version, path, acl } => {
            let acl = acl::parse(&acl)?;
            let stat = client.set_acl(&path, &acl, version).await.map_err(on(&path))?;
            Outcome::SetAcl { path, stat: stat.into() }
        }
        Command::Addauth { scheme, identity } => {
            let identity = one(&identity)?;
            client.auth(&scheme, identity.bytes()).await.map_err(on(&scheme))?;
            Outcome::Addauth { scheme }
        }
        Command::Sync { path } => {
            client.sync(&path).await.map_err(on(&path))?;
            Outcome::Sync { path }
        }
    })
}

/// An identity that is one word: of others nothing may be said, not even what is too much.
pub(super) fn one(identity: &[Secret]) -> Result<&Secret, ClientError> {
    match identity {
        [identity] if identity.is_pair() => Ok(identity),
        _ => Err(ClientError::Identity),
    }
}

async fn create(client: &Client, wanted: Create) -> Result<Outcome, ClientError> {
    let data = content::data(wanted.file.as_deref(), wanted.data.as_deref())?;
    let options = content::options(&wanted);
    let path = wanted.path;
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    if wanted.parents && !parent.is_empty() {
        let directory = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client.mkdir(parent, &directory).await.map_err(on(parent))?;
    }
    let (_, number) = client.create(&path, &data, &options).await.map_err(on(&path))?;
    let suffix = if wanted.sequential { number.to_string() } else { String::new() };
    Ok(Outcome::Create { path: path + &suffix })
}

/// Deletes a node and all below it, from below, and says how many that were. Not at once: what others create
/// meanwhile may stop it.
async fn delete_all(client: &Client, path: &str) -> Result<usize, ClientError> {
    let (mut nodes, mut next) = (vec![path.to_owned()], 0);
    while let Some(node) = nodes.get(next).cloned() {
        let children = client.list_children(&node).await.map_err(on(&node))?;
        let above = node.trim_end_matches('/');
        nodes.extend(children.iter().map(|child| format!("{above}/{child}")));
        next += 1;
    }
    for node in nodes.iter().rev() {
        match client.delete(node, None).await {
            // It has gone by itself.
            Ok(()) | Err(Refusal::NoNode) => {}
            Err(refusal) => return Err(on(node)(refusal)),
        }
    }
    Ok(nodes.len())
}
