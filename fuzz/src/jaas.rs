//! Arbitrary text as a JAAS file: it is refused without a value in the refusal, or what is added behind it is found beside
//! what was there.

use quorate_sasl::Jaas;

/// Feeds these bytes.
pub fn feed(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let jaas = match Jaas::read(text) {
        Ok(jaas) => jaas,
        Err(error) => return untold(text, &error.to_string()),
    };
    untold(text, &format!("{jaas:?}"));
    for name in ["Server", "QuorumServer", "QuorumLearner", "Client"] {
        match jaas.section(name) {
            Ok(section) => {
                assert!(jaas.has(name));
                assert!(section.users().names().all(|name| !name.is_empty()));
                assert!(section.own().is_none_or(|own| !own.user.is_empty()));
                untold(text, &format!("{section:?}"));
            }
            Err(error) => {
                untold(text, &error.to_string());
                assert!(error.to_string().len() < 1000, "{error}");
            }
        }
    }
    // Behind a remark without an end there is nothing.
    if text.contains("/*") || jaas.has("Added") {
        return;
    }
    if let Ok(more) = Jaas::read(&format!("{text}\nAdded {{ }};")) {
        assert!(more.has("Added"));
        assert_eq!(more.section("Server"), jaas.section("Server"));
    }
}

/// What stands in quotes behind a `=`, as passwords do, is told nowhere. Where a quote may be no quote, it cannot be told
/// from here.
fn untold(text: &str, told: &str) {
    let is_plain = !text.contains(['\\', '/', '\'']) && !text.contains("username");
    let pieces: Vec<_> = text.split('"').collect();
    let is_value = |at: usize| at % 2 == 1 && pieces[at - 1].ends_with('=');
    if is_plain && (0..pieces.len()).all(|at| is_value(at) || !pieces[at].contains("hush")) {
        assert!(!told.contains("hush"), "{told}");
    }
}
