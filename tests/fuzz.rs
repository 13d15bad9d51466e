//! The fuzz targets as an ordinary test: every input of the corpus, and for a moment inputs that are made of them. The long run,
//! guided by coverage, is `fuzz/run SECONDS`.
//!
//! `MUSTER_FUZZ_MS=N` mutates each target's corpus for so long; `MUSTER_FUZZ_SEED=N` begins with other dice.

#[path = "../fuzz/targets/mod.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use targets::TARGETS;

/// For each target, in milliseconds.
const MUTATE_MS: u64 = 250;
/// Of one input, in a debug build on a busy machine.
const WITHIN: Duration = Duration::from_secs(5);
const LONGEST: usize = 32 * 1024;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

fn inputs(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// The words of a dictionary as libFuzzer writes it: `name="text"`, with `\xNN` and `\\`.
fn words(file: &Path) -> Vec<Vec<u8>> {
    let Ok(text) = std::fs::read_to_string(file) else { return vec![] };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let word = |line: &str| {
        let (from, to) = (line.find('"')? + 1, line.rfind('"')?);
        let (mut out, mut rest) = (Vec::new(), line.get(from..to)?);
        while let Some(c) = rest.chars().next() {
            match rest.strip_prefix("\\x") {
                Some(hex) => {
                    out.push(u8::from_str_radix(hex.get(..2)?, 16).ok()?);
                    rest = &hex[2..];
                }
                None => {
                    rest = rest.strip_prefix('\\').unwrap_or(rest);
                    let c = rest.chars().next().unwrap_or(c);
                    out.extend(c.to_string().bytes());
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        Some(out)
    };
    lines.filter_map(word).collect()
}

/// Something like a known input, and not it.
fn mutant(dice: &mut Dice, corpus: &[(PathBuf, Vec<u8>)], words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[dice.roll(corpus.len())].1.clone();
    for _ in 0..=dice.roll(6) {
        let at = dice.roll(bytes.len() + 1);
        match dice.roll(9) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << dice.roll(8),
            2 if at < bytes.len() => bytes[at] = dice.roll(256) as u8,
            3 => bytes.truncate(at),
            4 => {
                let end = (at + dice.roll(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            5 => {
                let end = (at + dice.roll(60)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let times = 1 + dice.roll(20);
                bytes.splice(at..at, piece.repeat(times));
            }
            6 if !words.is_empty() => {
                let word = words[dice.roll(words.len())].clone();
                let end = (at + if dice.roll(2) == 0 { word.len() } else { 0 }).min(bytes.len());
                bytes.splice(at..end, word);
            }
            7 => {
                let other = &corpus[dice.roll(corpus.len())].1;
                let from = dice.roll(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                // A number of the text becomes another: lengths and counts are where bounds are.
                let digits: Vec<usize> = (0..bytes.len()).filter(|n| bytes[*n].is_ascii_digit()).collect();
                if let Some(place) = digits.get(dice.roll(digits.len())).copied() {
                    let numbers = ["-1", "0", "4294967296", "18446744073709551616", "1e999", "0.5"];
                    bytes.splice(place..place + 1, numbers[dice.roll(numbers.len())].bytes());
                }
            }
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// Proves: Z3
#[test]
fn no_input_of_the_corpus_and_nothing_made_of_it_breaks_a_parser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let span = Duration::from_millis(number("MUSTER_FUZZ_MS", MUTATE_MS));
    let seed = number("MUSTER_FUZZ_SEED", 1);
    let broken = tempfile::tempdir().unwrap().keep();
    let (mut replayed, mut made, mut findings) = (0, 0, Vec::new());
    let mut slowest = (Duration::ZERO, "");
    for (name, target) in TARGETS {
        let corpus = inputs(&root.join("corpus").join(name));
        assert!(corpus.len() >= 3, "{name}: {} inputs", corpus.len());
        let words = words(&root.join("dict").join(format!("{name}.dict")));
        let mut tried = |bytes: &[u8], what: &str| {
            let began = Instant::now();
            let whole = catch_unwind(AssertUnwindSafe(|| target(bytes))).is_ok();
            let took = began.elapsed();
            slowest = slowest.max((took, name));
            if !whole || took > WITHIN {
                let path = broken.join(format!("{name}-{}", findings.len()));
                std::fs::write(&path, bytes).unwrap();
                findings.push(format!("{name}: {what}, {took:?}: {}", path.display()));
            }
        };
        for (path, bytes) in &corpus {
            tried(bytes, &path.display().to_string());
            replayed += 1;
        }
        let mut dice = Dice(seed);
        let began = Instant::now();
        while began.elapsed() < span {
            tried(&mutant(&mut dice, &corpus, &words), "a mutant");
            made += 1;
        }
        if findings.len() > 10 {
            break;
        }
    }
    println!(
        "{} targets, {replayed} inputs replayed, {made} made, {} findings, the slowest {:?} ({})",
        TARGETS.len(),
        findings.len(),
        slowest.0,
        slowest.1
    );
    assert!(findings.is_empty(), "{findings:#?}");
    std::fs::remove_dir_all(broken).unwrap();
}

/// cargo-fuzz is told of every target, and every corpus has one.
#[test]
fn each_target_has_its_binary_and_its_corpus() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest: toml::Table = std::fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let bins: Vec<&str> = manifest["bin"].as_array().unwrap().iter().map(|bin| bin["name"].as_str().unwrap()).collect();
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(bins, names);
    let mut folders: Vec<String> = std::fs::read_dir(root.join("corpus"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(folders, sorted);
}
