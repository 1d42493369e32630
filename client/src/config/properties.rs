//! Java's `.properties` files, as far as Kafka's configuration files use them.

use std::path::Path;

use super::ConfigError;

/// Line number, key and value of every setting in a file.
pub(super) fn read(path: &Path) -> Result<Vec<(usize, String, String)>, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::File(format!("{} cannot be read: {error}", path.display())))?;
    parse(&text).map_err(|line| ConfigError::File(format!("{}:{line}: key=value is wanted", path.display())))
}

/// The settings of a text, or the number of the first line that is none.
fn parse(text: &str) -> Result<Vec<(usize, String, String)>, usize> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let mut line = line.trim().to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        while line.ends_with('\\') && !line.ends_with("\\\\") {
            line.pop();
            match lines.next() {
                Some((_, more)) => line.push_str(more.trim_start()),
                None => break,
            }
        }
        let (key, value) = line.split_once(['=', ':']).ok_or(index + 1)?;
        if key.trim().is_empty() {
            return Err(index + 1);
        }
        found.push((index + 1, key.trim().to_owned(), value.trim().replace("\\\\", "\\")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_comments_and_continued_lines() {
        let text = "# a comment\n\n acks = all\nbootstrap.servers=a:1,\\\n   b:2\nx:y\n";
        let expected = [(3, "acks", "all"), (4, "bootstrap.servers", "a:1,b:2"), (6, "x", "y")];
        let found = parse(text).expect("good");
        let found: Vec<(usize, &str, &str)> =
            found.iter().map(|(line, key, value)| (*line, key.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
        assert_eq!(parse("acks=all\nnothing"), Err(2));
    }
}
