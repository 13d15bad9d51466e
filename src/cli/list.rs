//! Reads a list of host names: plain text with a name a line, or JSON. What is wrong with it is said with its line.

use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use super::exit::Ending;
use crate::domain::text::neutralize_to;

/// More than any site has hosts.
const LIST_MAX: u64 = 4 * 1024 * 1024;

/// The names of a list, in its order, with those that are there twice or empty. `-` is standard input.
pub fn read(path: &Path) -> Result<Vec<String>, Ending> {
    let name = if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() };
    let unreadable = |cause: String| {
        Ending::refused(format!("the list '{name}' can't be read: {cause}"))
            .with_action("nothing was started; name a file that can be read, or '-' for standard input")
    };
    let mut bytes = Vec::new();
    let taken = if is_stdin(path) {
        std::io::stdin().lock().take(LIST_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LIST_MAX + 1).read_to_end(&mut bytes))
    };
    taken.map_err(|e| unreadable(e.to_string()))?;
    if bytes.len() as u64 > LIST_MAX {
        return Err(unreadable(format!("it is larger than {LIST_MAX} bytes")));
    }
    parse(&bytes).map_err(|(line, problem)| {
        Ending::refused(format!("{name}:{line}: {problem}"))
            .with_action("nothing was started; a list has one host name a line, or is JSON: {\"hosts\": [\"NAME\", …]}")
    })
}

/// Whether a list is read from where a person would answer.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

type Problem = (usize, String);

fn parse(bytes: &[u8]) -> Result<Vec<String>, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        (line, "is not UTF-8 text".to_owned())
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let names = match text.trim_start().starts_with(['{', '[']) {
        true => json(text)?,
        false => plain(text)?,
    };
    if names.is_empty() {
        return Err((1, "the list names no host".to_owned()));
    }
    Ok(names)
}

/// Other keys beside `hosts` are whoever's notes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Json {
    Whole { hosts: Vec<String> },
    Bare(Vec<String>),
}

fn json(text: &str) -> Result<Vec<String>, Problem> {
    // First as any JSON: what is wrong with the syntax is told with its line.
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| (e.line(), told(&e)))?;
    match serde_json::from_value(value) {
        Ok(Json::Whole { hosts } | Json::Bare(hosts)) => Ok(hosts),
        Err(_) => Err((1, "is neither a list of names nor an object with a list of names in 'hosts'".to_owned())),
    }
}

/// The parser's words, less the place that stands before them already.
fn told(error: &serde_json::Error) -> String {
    let text = error.to_string();
    neutralize_to(text.split(" at line ").next().unwrap_or(&text), 200)
}

fn plain(text: &str) -> Result<Vec<String>, Problem> {
    let mut names = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let name = line.split('#').next().unwrap_or_default().trim();
        if name.is_empty() {
            continue;
        }
        if let Some(c) = name.chars().find(|c| c.is_control()) {
            return Err((at + 1, format!("has a control character (U+{:04X})", u32::from(c))));
        }
        if name.contains(char::is_whitespace) {
            return Err((at + 1, format!("'{}' is more than one name", neutralize_to(name, 80))));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_a_name_a_line_with_comments_and_blank_lines() {
        let text = "# rack B07\n\ngpu-b07-41\r\n  gpu-b07-43   # was swapped\n#gpu-b07-45\ngpu-b07-41";
        assert_eq!(parse(text.as_bytes()).unwrap(), ["gpu-b07-41", "gpu-b07-43", "gpu-b07-41"]);
    }

    #[test]
    fn json_is_a_list_or_an_object_with_one_and_keeps_what_is_empty_for_the_judge() {
        let names = ["gpu-b07-41", "GPU-B07-41", ""];
        assert_eq!(parse(br#"["gpu-b07-41", "GPU-B07-41", ""]"#).unwrap(), names);
        assert_eq!(parse(br#"  {"also": "a note", "hosts": ["gpu-b07-41", "GPU-B07-41", ""]}"#).unwrap(), names);
    }

    #[test]
    fn what_is_wrong_with_a_list_is_told_with_its_line() {
        for (bytes, line, words) in [
            (&b"gpu-1\ngpu-2 gpu-3\n"[..], 2, "'gpu-2 gpu-3' is more than one name"),
            (b"gpu-1\n\xff\xfe\n", 2, "UTF-8"),
            (b"gpu-1\ngpu\x1b[2J\n", 2, "control character (U+001B)"),
            (b"# nothing\n\n", 1, "names no host"),
            (b"", 1, "names no host"),
            (b"{\n  \"hosts\": [\n    \"gpu-1\",\n  ]\n}", 4, "trailing comma"),
            (b"{\"hosts\": \"gpu-1\"}", 1, "'hosts'"),
            (b"{\"hosts\": [7]}", 1, "'hosts'"),
            (b"{\"hosts\": []}", 1, "names no host"),
        ] {
            let (at, problem) = parse(bytes).unwrap_err();
            assert!(at == line && problem.contains(words), "{at}: {problem}");
            assert!(!problem.contains('\u{1b}'), "{problem:?}");
        }
    }

    #[test]
    fn a_list_that_is_not_there_is_one_sentence_and_exit_2() {
        let ending = read(Path::new("/nonexistent/rack.txt")).unwrap_err();
        assert!(ending.message.contains("'/nonexistent/rack.txt'") && ending.exit == super::super::exit::Exit::Refused);
    }
}
