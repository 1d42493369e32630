//! Java's `.properties` format: `key=value` a line, comments, lines that go on with a backslash, escapes.

/// A setting of a file: the number of its first line, its key and its value.
pub(crate) type Line = (usize, String, String);

/// The settings of a text in order. Every line is one in Java's eyes too, so there is nothing to refuse but a line without a key.
pub(crate) fn parse(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let mut whole = line.trim_start().to_owned();
        if whole.is_empty() || whole.starts_with(['#', '!']) {
            continue;
        }
        while goes_on(&whole) {
            whole.pop();
            match lines.next() {
                Some((_, more)) => whole.push_str(more.trim_start()),
                None => break,
            }
        }
        let (key, value) = cut(&whole);
        found.push((index + 1, unescape(key.trim()), unescape(value).trim_end().to_owned()));
    }
    found
}

/// An odd number of backslashes at the end: the last one is not escaped.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// At the first `=` or `:`, or else the first blank, that is not escaped.
fn cut(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let mut blank = None;
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '=' | ':' => return (&line[..at], line[at + 1..].trim_start()),
            c if c.is_whitespace() => {
                let rest = line[at..].trim_start();
                if !rest.starts_with(['=', ':']) {
                    blank = Some((&line[..at], rest));
                    break;
                }
            }
            _ => {}
        }
    }
    blank.unwrap_or((line, ""))
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                out.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_as_java_reads_them() {
        let text = "# comment\n! another\n\n  a = 1 \nb:2\nc 3\nlong=x,\\\n   y,\\\n   z\npath=C:\\\\data\nd\nu=\\u0041\\=\n";
        let expected = [
            (4, "a", "1"),
            (5, "b", "2"),
            (6, "c", "3"),
            (7, "long", "x,y,z"),
            (10, "path", "C:\\data"),
            (11, "d", ""),
            (12, "u", "A="),
        ];
        let found = parse(text);
        let found: Vec<(usize, &str, &str)> =
            found.iter().map(|(line, key, value)| (*line, key.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
    }
}
