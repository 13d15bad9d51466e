//! What is wrong in a configuration: every finding with file, line and key.

use std::fmt;

/// One finding. It never holds the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    pub file: String,
    /// From 1; `None` where the whole file is meant.
    pub line: Option<usize>,
    /// `sites.osl1.dhcp.port`; empty where no key is meant.
    pub key: String,
    pub message: String,
    /// The line of the file, as far as it may be shown.
    pub excerpt: Option<Excerpt>,
}

/// The key or header of a line, and where in it the finding is. What stands behind the `=` is not in it: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    pub text: String,
    /// Characters before it, from 0.
    pub column: usize,
    pub width: usize,
}

impl Excerpt {
    /// `None` where a line is no plain key and no header: a part of a value that goes over lines is not shown.
    pub(super) fn of(line: &str, column: usize) -> Option<Excerpt> {
        let plain = |text: &str| {
            let named = |c: char| c.is_ascii_alphanumeric() || "_-.\" ".contains(c);
            !text.trim().is_empty() && text.len() <= 80 && text.chars().all(named)
        };
        let trimmed = line.trim_end();
        let inside = trimmed.trim_start().trim_start_matches('[').trim_end_matches(']');
        let indent = line.len() - line.trim_start().len();
        // What else counts as space somewhere moves a terminal's cursor.
        let is_indent = line[..indent].chars().all(|c| c == ' ' || c == '\t');
        if is_indent && trimmed.trim_start().starts_with('[') && trimmed.ends_with(']') && plain(inside) {
            let column = indent;
            return Some(Excerpt { text: trimmed.to_owned(), column, width: trimmed.len() - column });
        }
        let (key, _) = line.split_once('=')?;
        // A key of an inline table stands behind the first `=`: the line is shown, and its beginning is marked.
        let indent = key.len() - key.trim_start().len();
        let column = if column < key.len() { column } else { indent };
        let width = key.trim_end().len().saturating_sub(column).max(1);
        plain(key).then(|| Excerpt { text: format!("{}= …", key), column, width })
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All findings of one file, in the order of its lines: one a line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl ConfigErrors {
    /// Every finding with its line shown and marked, as compilers do.
    pub fn pointed(&self) -> String {
        self.0.iter().map(ConfigError::pointed).collect::<Vec<_>>().join("\n")
    }
}

impl ConfigError {
    /// The finding, and under it the line that it is about.
    pub fn pointed(&self) -> String {
        let (Some(line), Some(excerpt)) = (self.line, &self.excerpt) else { return self.to_string() };
        let number = line.to_string();
        let (gutter, indent) = (" ".repeat(number.len()), " ".repeat(excerpt.column));
        let mark = "^".repeat(excerpt.width);
        format!("{self}\n  {number} | {}\n  {gutter} | {indent}{mark}", excerpt.text)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
