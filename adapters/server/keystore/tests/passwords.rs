//! Passwords: out of files, and never shown.

use quorate_keystore::{NotText, Password};

use crate::fixtures::{keys, password};

#[test]
fn a_password_file_is_its_first_line() {
    let read = Password::from_file;
    assert_eq!(read(b"changeit"), Ok(password()));
    assert_eq!(read(b"changeit\n"), Ok(password()));
    assert_eq!(read(b"changeit\r\n"), Ok(password()));
    assert_eq!(read(b"changeit\nand more\n"), Ok(password()));
    assert_eq!(read(b" changeit"), Ok(Password::new(" changeit")), "spaces are part of it");
    assert!(read(b"\n").unwrap().is_empty());
    assert_eq!(read(b"\xff\n"), Err(NotText));
}

#[test]
fn neither_password_nor_key_is_shown() {
    assert_eq!(format!("{:?}", password()), "Password(***)");
    let store = keys("pkcs8-rsa.pem").unwrap();
    let shown = format!("{store:?}");
    let secret: Vec<String> = store.key.secret_der().iter().map(u8::to_string).collect();
    assert!(shown.contains("chain") && !shown.contains(&secret[100..110].join(", ")), "{shown}");
}
