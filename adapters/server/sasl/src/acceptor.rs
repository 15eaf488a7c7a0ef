//! The side that is logged in to.

use alloc::string::String;
use alloc::vec::Vec;

use crate::nonces::Nonce;
use crate::password::Password;
use crate::proof::{Proof, Side, is_same};
use crate::refused::Refused;
use crate::service::Service;
use crate::tokens::{Challenge, Response, write_rspauth};
use crate::users::Users;

/// One login at a server: each has its own, and it is of no use for another.
#[derive(Debug)]
pub struct Acceptor {
    service: Service,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It has heard nothing.
    New(Nonce),
    /// It has sent its challenge.
    Asked(Nonce),
    /// The login has succeeded or failed: there is no other.
    Over,
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To be sent, and an answer is waited for.
    Challenge(Vec<u8>),
    /// The other side is this user.
    Done {
        /// Who it is.
        user: String,
        /// To be sent: the server proves that it knows the password, too.
        token: Vec<u8>,
    },
}

impl Acceptor {
    /// A login to a service. The nonce is for this one alone.
    #[must_use]
    pub const fn new(service: Service, nonce: Nonce) -> Self {
        Self { service, state: State::New(nonce) }
    }

    /// Takes the next token of the other side: the first one is empty, the second one its response.
    ///
    /// # Errors
    ///
    /// Why the login is refused; every token behind that is, too.
    pub fn step(&mut self, token: &[u8], users: &Users) -> Result<Reply, Refused> {
        match core::mem::replace(&mut self.state, State::Over) {
            State::New(nonce) if token.is_empty() => {
                let challenge = Challenge::of(self.service, &nonce).write();
                self.state = State::Asked(nonce);
                Ok(Reply::Challenge(challenge))
            }
            State::Asked(nonce) => self.judge(&Response::read(token)?, &nonce, users),
            State::New(_) | State::Over => Err(Refused::OutOfTurn),
        }
    }

    fn judge(&self, response: &Response, nonce: &Nonce, users: &Users) -> Result<Reply, Refused> {
        if response.nonce != nonce.0.as_bytes() {
            return Err(Refused::Nonce);
        }
        let uri = self.service.uri();
        let is_ours = response.uri.eq_ignore_ascii_case(uri.as_bytes())
            && response.realm == self.service.name.as_bytes();
        if !is_ours {
            return Err(Refused::Service);
        }
        if response.authzid.as_ref().is_some_and(|authzid| *authzid != response.user) {
            return Err(Refused::Authorization);
        }
        let user = response.user()?;
        let proof = Proof {
            user: &user,
            realm: &response.realm,
            nonce: &response.nonce,
            cnonce: &response.cnonce,
            authzid: response.authzid.as_deref(),
            uri: &response.uri,
        };
        // Of a user that there is not as much is done.
        let known = users.password(&user);
        let none = Password::new("");
        let password = known.unwrap_or(&none);
        let is_right = is_same(&proof.by(Side::Response, password), &response.proof);
        if !(is_right & known.is_some()) {
            return Err(Refused::Credentials);
        }
        let token = write_rspauth(&proof.by(Side::Rspauth, password));
        Ok(Reply::Done { user, token })
    }
}
