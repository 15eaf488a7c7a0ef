//! Who a client is by its certificate, which was verified before it said a word.
//!
//! In the Java code: `X509AuthenticationProvider`.

use quorate_application::clients::{ClientId, Transport};

use crate::service::{Service, Step};

impl Service {
    /// A client has come through TLS, or without. A subject without a name is no identity: access lists cannot have it.
    pub(crate) fn certify(&mut self, step: &mut Step<'_>, client: ClientId, over: Transport) {
        let Transport::Tls { subject } = over else { return };
        let Some(connection) = self.clients.get_mut(&client) else { return };
        connection.secure = true;
        let Some(subject) = subject.filter(|subject| !subject.is_empty()) else { return };
        let may_all = self.options.x509_super.as_ref() == Some(&subject);
        let fits = (!may_all || connection.identify("super", &subject))
            && connection.identify("x509", &subject);
        if !fits {
            self.has_too_many_identities(step, client);
        }
    }
}
