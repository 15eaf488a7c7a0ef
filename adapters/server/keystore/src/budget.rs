//! How many rounds of key derivation one file may ask for.

use crate::reason::Reason;

/// Rounds of key derivation that are left for one file. A file says how many it wants for each of its parts; what is
/// more than all may cost together is refused before it is computed.
#[derive(Debug)]
pub(crate) struct Budget {
    most: u32,
    spent: u64,
}

impl Budget {
    pub(crate) const fn new(most: u32) -> Self {
        Self { most, spent: 0 }
    }

    /// Takes these rounds out of it.
    pub(crate) fn spend(&mut self, rounds: u64) -> Result<u32, Reason> {
        let asked = self.spent.saturating_add(rounds.max(1));
        match u32::try_from(rounds.max(1)) {
            Ok(rounds) if asked <= u64::from(self.most) => {
                self.spent = asked;
                Ok(rounds)
            }
            _ => Err(Reason::Rounds { asked, most: self.most }),
        }
    }
}
