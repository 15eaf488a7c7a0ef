//! The side that logs in.

use alloc::vec::Vec;

use crate::nonces::Nonce;
use crate::proof::{Hex, Proof, Side, is_same};
use crate::refused::Refused;
use crate::service::Service;
use crate::tokens::{Challenge, Response, read_rspauth};
use crate::users::Credentials;

/// One login of a client, or of a server at another. It begins with an empty token.
#[derive(Debug)]
pub struct Dialler {
    service: Service,
    credentials: Credentials,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It waits for the challenge.
    New(Nonce),
    /// It waits for this proof.
    Answered(Hex),
    /// The login has succeeded or failed.
    Over,
}

/// What the side that logs in does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// To be sent, and an answer is waited for.
    Send(Vec<u8>),
    /// It is logged in, and the other side knows the password as well.
    Done,
}

impl Dialler {
    /// A login to a service. The nonce is for this one alone.
    #[must_use]
    pub const fn new(service: Service, credentials: Credentials, nonce: Nonce) -> Self {
        Self { service, credentials, state: State::New(nonce) }
    }

    /// Takes the next token of the other side: its challenge, and then its proof.
    ///
    /// # Errors
    ///
    /// Why there is no login; every token behind that is refused, too.
    pub fn step(&mut self, token: &[u8]) -> Result<Turn, Refused> {
        match core::mem::replace(&mut self.state, State::Over) {
            State::New(nonce) => self.answer(&Challenge::read(token)?, &nonce),
            State::Answered(proof) => {
                let shown = read_rspauth(token).map_err(|_| Refused::Unproved)?;
                if is_same(&proof, &shown) { Ok(Turn::Done) } else { Err(Refused::Unproved) }
            }
            State::Over => Err(Refused::OutOfTurn),
        }
    }

    fn answer(&mut self, challenge: &Challenge<'_>, nonce: &Nonce) -> Result<Turn, Refused> {
        let Credentials { user, password } = &self.credentials;
        let sent = if challenge.utf8 { user.as_bytes().to_vec() } else { latin(user)? };
        let uri = self.service.uri().into_bytes();
        let proof = Proof {
            user,
            realm: &challenge.realm,
            nonce: &challenge.nonce,
            cnonce: nonce.0.as_bytes(),
            authzid: Some(&sent),
            uri: &uri,
        };
        let expected = proof.by(Side::Rspauth, password);
        let proof = proof.by(Side::Response, password).to_vec();
        let response = Response {
            utf8: challenge.utf8,
            user: sent.clone(),
            realm: challenge.realm.to_vec(),
            nonce: challenge.nonce.to_vec(),
            cnonce: nonce.0.as_bytes().to_vec(),
            uri,
            proof,
            authzid: Some(sent),
        };
        self.state = State::Answered(expected);
        Ok(Turn::Send(response.write()))
    }
}

/// A name in ISO 8859-1, for who does not say that it reads UTF-8.
fn latin(user: &str) -> Result<Vec<u8>, Refused> {
    let bytes: Option<_> = user.chars().map(|character| u8::try_from(character).ok()).collect();
    bytes.ok_or(Refused::Unspoken("the character set"))
}
