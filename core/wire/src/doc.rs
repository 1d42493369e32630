//! `docs/protocol.md`, written from the tables. `cargo run -p minikafka-wire --example protocol > docs/protocol.md` renews it; a test
//! compares.

use std::fmt::{self, Write};

use crate::table::{Field, Table, Type};
use crate::{APIS, Api, Versions};

/// The text of `docs/protocol.md`.
pub fn protocol() -> String {
    let mut text = String::new();
    write_all(&mut text).expect("a String takes all text");
    text
}

fn write_all(to: &mut String) -> fmt::Result {
    to.push_str(INTRODUCTION);
    matrix(to)?;
    to.push_str(LEGEND);
    for api in APIS {
        writeln!(to, "\n### {} ({})\n", api.name, api.key.code())?;
        writeln!(to, "Request\n")?;
        fields(to, api.request, 0)?;
        writeln!(to, "\nResponse\n")?;
        fields(to, api.response, 0)?;
    }
    Ok(())
}

const INTRODUCTION: &str = "\
# Protocol matrix

Written by `cargo run -p minikafka-wire --example protocol`; a test fails when this page and the tables in `core/wire` disagree.

A broker answers ApiVersions with exactly the served rows. Any other key or version closes the connection, after one log line that names
client, address, API, version and what is supported; only ApiVersions itself in an unknown version is answered (body version 0,
error 35, its own range). Produce is advertised from 0 because clients look there before they compress; 0 to 2 are refused.

";

const LEGEND: &str = "
## Fields

Each line: name, type, versions that carry the field. `null` gives the versions in which it may be null, `tag` the number of a field that is
written only where it differs from its default, `=` the default where it is not zero, empty or absent.
";

fn matrix(to: &mut String) -> fmt::Result {
    writeln!(to, "| key | API | advertised | read and written | flexible from | served |")?;
    writeln!(to, "|---|---|---|---|---|---|")?;
    for api in APIS {
        let advertised = if api.served { range(api.advertised_min, api) } else { "-".to_owned() };
        writeln!(
            to,
            "| {} | {} | {} | {} | {} | {} |",
            api.key.code(),
            api.name,
            advertised,
            range(api.versions.min, api),
            api.flexible.min,
            if api.served { "yes" } else { "not yet" }
        )?;
    }
    Ok(())
}

fn range(min: i16, api: &Api) -> String {
    Versions::between(min, api.versions.max).to_string()
}

fn fields(to: &mut String, table: &Table, depth: usize) -> fmt::Result {
    for field in table.fields {
        write!(
            to,
            "{:depth$}- {} {} {}",
            "",
            field.name,
            type_name(&field.kind),
            field.versions,
            depth = depth * 2
        )?;
        attributes(to, field)?;
        to.push('\n');
        if let Some(inner) = structure(&field.kind) {
            fields(to, inner, depth + 1)?;
        }
    }
    if table.fields.is_empty() {
        writeln!(to, "{:depth$}- no fields", "", depth = depth * 2)?;
    }
    Ok(())
}

fn attributes(to: &mut String, field: &Field) -> fmt::Result {
    if !field.nullable.is_empty() {
        write!(to, ", null {}", field.nullable)?;
    }
    if let Some(tag) = field.tag {
        write!(to, ", tag {tag}")?;
    }
    match field.default {
        None | Some("String::new()" | "0" | "false") => Ok(()),
        Some(default) => write!(to, ", = {default}"),
    }
}

fn structure(kind: &Type) -> Option<&'static Table> {
    match kind {
        Type::Struct(table) => Some(table),
        Type::Array(element) => structure(element),
        _ => None,
    }
}

fn type_name(kind: &Type) -> String {
    match kind {
        Type::Struct(_) => "structure".to_owned(),
        Type::Array(element) => format!("[]{}", type_name(element)),
        other => other.to_string(),
    }
}
