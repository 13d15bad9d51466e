//! What `contrib/release` packs, as far as it can be told without making a release: every file of the package is in the tree
//! or made by that script, its scripts can be read by their shells, and the licences of others come along.

use std::path::Path;
use std::process::Command;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn run(program: &str, arguments: &[&str]) -> String {
    let out = Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(out.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Proves: K5
#[test]
fn the_package_has_binary_pages_completions_unit_and_example_and_all_of_it_exists() {
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let deb = &manifest["package"]["metadata"]["deb"];
    let release = read("contrib/release");
    let mut places = Vec::new();
    for asset in deb["assets"].as_array().unwrap() {
        let [source, place, mode] = [0, 1, 2].map(|n| asset[n].as_str().unwrap().to_owned());
        assert_eq!(mode, if place == "usr/bin/" { "755" } else { "644" }, "{source}");
        match source.strip_prefix("target/") {
            Some("release/muster") => {}
            Some(made) => {
                let made = made.strip_prefix("package/").unwrap_or_else(|| panic!("nothing makes {source}"));
                let made = made.trim_end_matches("/*.1");
                assert!(release.contains(&format!("$package/{made}")), "contrib/release does not make {source}");
            }
            None => {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(source.trim_end_matches("*.md"));
                assert!(folder.exists(), "{source}");
            }
        }
        places.push(place);
    }
    for place in [
        "usr/bin/",
        "usr/share/man/man1/",
        "usr/share/bash-completion/completions/muster",
        "usr/share/zsh/vendor-completions/_muster",
        "usr/share/fish/vendor_completions.d/muster.fish",
        "lib/systemd/system/muster.service",
        "usr/share/doc/muster/examples/",
    ] {
        assert!(places.iter().any(|found| found == place), "{place}: {places:#?}");
    }
    // The unit of the tree is for what a person installs, the package's for its own.
    assert!(release.contains("s,/usr/local/bin/muster,/usr/bin/muster,"));
    let unit = read("contrib/muster.service");
    assert!(unit.contains("\nExecStart=/usr/local/bin/muster serve\n"), "{unit}");
    let made = unit.replace("/usr/local/bin/muster", "/usr/bin/muster");
    assert!(!made.contains("/usr/local"), "{made}");
}

#[test]
fn the_scripts_of_the_package_can_be_read_by_their_shells() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/debian");
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        run("sh", &["-n", path.to_str().unwrap()]);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755, "{}", path.display());
        found += 1;
    }
    assert_eq!(found, 3);
    run("bash", &["-n", "contrib/release"]);
    let help = run("bash", &["contrib/release", "--help"]);
    assert!(help.contains("usage: contrib/release"), "{help}");
}

#[test]
fn the_licences_of_others_come_along_with_the_crates_that_have_them() {
    let text = run("python3", &["contrib/third-party.py"]);
    for name in ["rustls ", "ring ", "tokio ", "rusqlite ", "ratatui "] {
        assert!(text.lines().any(|line| line.starts_with(name) && line.ends_with(')')), "{name} is missing");
    }
    // Only of tests: not in the binary.
    assert!(!text.contains("epaint_default_fonts") && !text.contains("proptest "));
    let home = std::env::var("HOME").unwrap_or_default();
    assert!(home.len() < 2 || !text.contains(&home), "a path of this machine is in it");
}
