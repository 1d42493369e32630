//! `docs/client.md` shows every key with its default.

use std::path::Path;

#[test]
fn every_key_stands_in_the_docs_with_its_default() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/client.md");
    let page = std::fs::read_to_string(page).expect("docs/client.md");
    for key in minikafka_client::KEYS {
        let default = if key.default.is_empty() { "-".to_owned() } else { format!("`{}`", key.default) };
        let row = format!("| `{}` | {default} |", key.name);
        assert!(page.contains(&row), "docs/client.md has no row that begins {row}");
    }
}
