//! Names as Java writes them: the vectors are `X500Principal.getName()` of Java 17.

use quorate_tls::name_text;

const VECTORS: &str = include_str!("fixtures/distinguished_names.tsv");

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn names_are_written_as_java_does() {
    let mut count = 0;
    for line in VECTORS.lines() {
        let mut columns = line.split('\t');
        let (what, der, text) =
            (columns.next().unwrap(), columns.next().unwrap(), columns.next().unwrap());
        let text = String::from_utf8(bytes(text)).unwrap();
        assert_eq!(name_text(&bytes(der)).unwrap(), text, "{what}");
        count += 1;
    }
    assert_eq!(count, 32);
}

#[test]
fn what_is_no_name_is_refused() {
    let usual = bytes(VECTORS.lines().next().unwrap().split('\t').nth(1).unwrap());
    for length in 0..usual.len() {
        assert!(name_text(&usual[..length]).is_err(), "{length}");
    }
    assert!(name_text(&[&usual[..], &[0]].concat()).is_err());
}
