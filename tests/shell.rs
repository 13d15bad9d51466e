//! What a shell and a packager have of the binary: completions, manual pages, the version with its making.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use std::path::Path;
use std::process::Command;

use binary::muster;

fn out(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && stderr.is_empty(), "{command:?}: {}\n{stdout}\n{stderr}", out.status);
    stdout.into_owned()
}

fn completions(shell: &str) -> String {
    out(&mut muster(&["completions", shell]))
}

/// Whether a program is there; in CI it has to be.
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    assert!(found || std::env::var_os("MUSTER_MUST_RUN").is_none(), "{program} is not installed");
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// Lines of what was begun to be typed, and something that is offered for each; `None`: it is not.
const TYPED: [(&str, &str, bool); 8] = [
    ("muster ru", "runs", true),
    ("muster runs re", "replay", true),
    ("muster runs re", "retry", true),
    ("muster runs re", "runs", false),
    ("muster enroll --force-", "--force-inspection", true),
    ("muster enroll --force-", "--json", false),
    ("muster completions z", "zsh", true),
    ("muster runs export 3f2a --format ", "json", true),
];

/// Proves: K5
#[test]
fn bash_completes_commands_options_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("muster.bash");
    std::fs::write(&script, completions("bash")).unwrap();
    // As readline calls it: the words up to the cursor, the one that is typed, the one before.
    let driver = r#"
        set -eu
        source "$1"
        line=$2
        read -ra COMP_WORDS <<<"$line"
        case $line in *' ') COMP_WORDS+=('') ;; esac
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
        function=$(complete -p muster | sed 's/.*-F \([^ ]*\) .*/\1/')
        "$function" muster "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    for (line, offered, is) in TYPED {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", driver, "bash"]).arg(&script).arg(line);
        let all = out(&mut bash);
        assert_eq!(all.lines().any(|word| word.trim() == offered), is, "'{line}' offers {all}");
    }
}

/// Proves: K5
#[test]
fn fish_completes_commands_options_and_values() {
    if !is_there("fish") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("muster.fish");
    std::fs::write(&script, completions("fish")).unwrap();
    // What stands alone is not among the values that clap's script for fish knows.
    for (line, offered, is) in TYPED.into_iter().filter(|(line, ..)| !line.starts_with("muster completions")) {
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", "source $argv[1]; complete -C $argv[2]"]).arg(&script).arg(line);
        fish.env("HOME", folder.path());
        let all = out(&mut fish);
        let words = all.lines().filter_map(|line| line.split('\t').next());
        assert_eq!(words.into_iter().any(|word| word == offered), is, "'{line}' offers {all}");
    }
}

/// Proves: K5
#[test]
fn zsh_takes_its_completions_and_every_shell_has_all_commands_in_them() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = completions(shell);
        for word in ["enroll", "platform-class", "backfill", "force-inspection", "state-dir"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    if !is_there("zsh") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Where zsh looks for it: a file of this name in a folder of `fpath`.
    std::fs::write(folder.path().join("_muster"), completions("zsh")).unwrap();
    let driver = "fpath=($1 $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[muster]; autoload +X _muster; zcompile -t _muster 2>/dev/null; whence -w _muster";
    let mut zsh = Command::new("zsh");
    zsh.args(["-fc", driver, "zsh"]).arg(folder.path()).env("HOME", folder.path());
    assert_eq!(out(&mut zsh), "_muster\n_muster: function\n");
}

/// Proves: K5
#[test]
fn there_is_a_manual_page_for_each_command_and_each_can_be_set() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert_eq!(out(muster(&["man", "--all"]).arg(&pages)), "");
    let mut names: Vec<String> =
        std::fs::read_dir(&pages).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    for name in ["muster.1", "muster-enroll.1", "muster-runs-show.1", "muster-platform-class-backfill.1"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    let first = std::fs::read_to_string(pages.join("muster.1")).unwrap();
    assert_eq!(out(&mut muster(&["man"])), first);
    assert!(first.contains(env!("CARGO_PKG_VERSION")) && first.contains("\\-\\-state\\-dir"), "{first}");
    if is_there("groff") {
        for name in &names {
            let page = pages.join(name);
            let set = out(Command::new("groff").args(["-man", "-Tutf8", "-ww", "-rF0"]).arg(&page));
            assert!(set.len() > 300, "{name}: {set}");
        }
    }
}

/// Proves: K5
#[test]
fn the_version_says_of_what_it_was_made() {
    let said = out(&mut muster(&["--version"]));
    let (version, made) = said.trim_end().strip_suffix(')').unwrap().split_once(" (").unwrap();
    assert_eq!(version, format!("muster {}", env!("CARGO_PKG_VERSION")));
    let parts: Vec<&str> = made.split(", ").collect();
    let [commit, profile, target, compiler] = parts[..] else { panic!("{said}") };
    if Path::new(env!("CARGO_MANIFEST_DIR")).join(".git").exists() {
        let (hash, day) = commit.split_once(' ').unwrap();
        assert!(hash.len() >= 10 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{said}");
        assert!(day.parse::<jiff::civil::Date>().is_ok(), "{said}");
    }
    assert_eq!(profile, if cfg!(debug_assertions) { "debug" } else { "release" });
    assert!(target.contains(std::env::consts::ARCH) && compiler.starts_with("rustc "), "{said}");
    for command in ["enroll", "serve"] {
        assert!(out(&mut muster(&[command, "--version"])).contains(made), "{command}");
    }
}
