//! JAAS files.

use quorate_sasl::{FILE_BYTES_MAX, Jaas, JaasReason};

const USUAL: &str = r#"
/* Of an ensemble
   with SASL on both planes. */
QuorumServer {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       user_zkq="s3cret-pw"; // the only one
};
QuorumLearner {
       org.apache.zookeeper.server.auth.DigestLoginModule required
       username="zkq"
       password="s3cret-pw";
};
"Server" {
    org.apache.zookeeper.server.auth.DigestLoginModule REQUIRED
        user_super="adminsecret" user_bob=bobsecret user_eve="a \"b\" \\ \101\tc" user_bob="later"
        debug=true;
    org.apache.zookeeper.server.auth.DigestLoginModule sufficient user_ann="x";
};
Client { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/etc/${kt}" principal="zk/h@R"; };
Nothing { };
"#;

#[test]
fn users_and_ones_own_are_read_out_of_the_sections_that_are_asked_for() {
    let jaas = Jaas::read(USUAL).unwrap();
    let server = jaas.section("Server").unwrap();
    assert_eq!(server.users().names().collect::<Vec<_>>(), ["ann", "bob", "eve", "super"]);
    assert_eq!(server.own(), None);
    let learner = jaas.section("QuorumLearner").unwrap();
    assert_eq!(learner.own().unwrap().user, "zkq");
    assert!(learner.users().is_empty() && jaas.section("Nothing").unwrap().users().is_empty());
    let peers = jaas.section("QuorumServer").unwrap();
    assert_eq!(peers.users().count(), 1);
    assert!(jaas.has("Client") && !jaas.has("client"));
    let one = |text: &str| {
        let text =
            format!("A {{ org.apache.zookeeper.server.auth.DigestLoginModule required {text}; }};");
        Jaas::read(&text).unwrap().section("A").unwrap()
    };
    assert_eq!(
        one("user_e=\"a \\\"b\\\" \\\\ \\101\\tc\""),
        one("user_e=\"a \\\"b\\\" \\134 A\\11c\"")
    );
    assert_eq!(one("user_e=\"\\4017\""), one("user_e=\" 17\""), "an octal number is one byte");
    assert_ne!(one("user_e=\"x\""), one("user_e=\"X\""));
}

#[test]
fn another_login_module_is_refused_by_its_name_when_it_is_asked_for() {
    let jaas = Jaas::read(USUAL).unwrap();
    let error = jaas.section("Client").unwrap_err();
    assert!(matches!(error.reason, JaasReason::Module { .. }));
    let said = error.to_string();
    assert!(said.starts_with("line 19: ") && said.contains("Krb5LoginModule"), "{said}");
    let none = jaas.section("Other").unwrap_err().reason;
    assert_eq!(none, JaasReason::NoSection("Other".into()));
}

#[test]
fn what_java_does_not_read_is_refused_with_its_line_and_without_passwords() {
    let digest = "org.apache.zookeeper.server.auth.DigestLoginModule";
    for (line, text) in [
        (1, "A"),
        (1, "A { x"),
        (1, "A { x maybe; };"),
        (1, "A { x required }; "),
        (2, "A { x required\n hush=; };"),
        (2, "A { x required\n hush 'hush'; };"),
        (1, "A { x required a='hush'; };"),
        (1, "A { x required a=1234; };"),
        (1, "A { x required a=-hush; };"),
        (1, "A { x required a=\"hush; };"),
        (1, "A { x required a=\"hush\n\"; };"),
        (3, "A { x required a=\"b\"; }\n\n"),
        (3, "A { };\n/*\n*/ A { };"),
        (1, "# remark\nA { };"),
        (1, "A { x required a=\"hush\\"),
    ] {
        let error = Jaas::read(text).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(!error.to_string().contains("hush"), "{error}");
    }
    for options in [
        "username=\"a\"",
        "username=\"\" password=\"hush\"",
        "user_=\"hush\"",
        "user_a=\"${hush}\"",
    ] {
        let jaas = Jaas::read(&format!("A {{ {digest} required {options}; }};")).unwrap();
        let said = jaas.section("A").unwrap_err().to_string();
        assert!(!said.contains("hush"), "{said}");
        assert!(!format!("{jaas:?}").contains("hush"));
    }
    let long = " ".repeat(FILE_BYTES_MAX + 1);
    assert!(matches!(Jaas::read(&long).unwrap_err().reason, JaasReason::Length { .. }));
    assert!(Jaas::read(&long[1..]).is_ok());
}
