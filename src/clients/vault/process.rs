//! Runs the program of a vault: secrets go through pipes only, what it says is bounded, and none of it outlives its deadline.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::zeroize::Zeroizing;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::domain::text::neutralize_to;

/// An item with a few keys is a few thousand bytes.
const OUT_MAX: usize = 256 * 1024;
/// Of what a program complains about.
const ERR_MAX: usize = 4 * 1024;

/// What every program needs of the environment.
const BASIC: [&str; 6] = ["HOME", "PATH", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR"];

/// One call of a program.
pub(super) struct Call<'a> {
    pub program: &'a Path,
    /// Seen by everybody on the machine: never a secret.
    pub args: &'a [&'a str],
    /// Names of variables that it is given, if muster has them; with `*` at the end every name that begins so.
    pub environment: &'a [&'a str],
    /// Variables that it is given in any case.
    pub set: &'a [(&'a str, &'a str)],
    pub stdin: &'a [u8],
    pub deadline: Duration,
}

/// How a program ended.
pub(super) struct Ended {
    pub good: bool,
    /// Zeroed when it is dropped.
    pub out: Zeroizing<Vec<u8>>,
    /// What it complained about, in one line; not neutralized yet.
    pub complaint: String,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("there is no program '{0}'")]
    NotThere(String),
    #[error("'{program}' could not be run: {cause}")]
    Broken { program: String, cause: String },
    #[error("'{0}' says more than {OUT_MAX} bytes")]
    TooMuch(String),
    #[error("'{0}' did not end in time, and was killed")]
    Late(String),
}

/// Ends the whole group of a program whose call is given up, those that it has started among them.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            kill_process_group(pid, Signal::KILL).ok(); // it may have ended by itself
        }
    }
}

impl Call<'_> {
    pub async fn run(&self) -> Result<Ended, CallError> {
        let program = neutralize_to(&self.program.display().to_string(), 100);
        let broken = |e: std::io::Error| CallError::Broken { program: program.clone(), cause: e.to_string() };
        let mut child = Command::new(self.program)
            .args(self.args)
            .env_clear()
            .envs(self.variables())
            .envs(self.set.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => CallError::NotThere(program.clone()),
                _ => broken(e),
            })?;
        let mut group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(broken(std::io::Error::other("it has no pipes")));
        };
        let whole = async {
            let write = async {
                // A program that reads nothing, or not all, says itself why.
                stdin.write_all(self.stdin).await.ok();
                drop(stdin);
            };
            let ((), out, err) = tokio::join!(write, bounded(stdout, OUT_MAX), bounded(stderr, ERR_MAX));
            (out, err, child.wait().await)
        };
        let Ok((out, err, status)) = tokio::time::timeout(self.deadline, whole).await else {
            return Err(CallError::Late(program));
        };
        group.0 = None;
        let (out, all) = out.map_err(broken)?;
        let (err, _) = err.map_err(broken)?;
        if !all {
            return Err(CallError::TooMuch(program));
        }
        let complaint = complaint(&String::from_utf8_lossy(&err));
        Ok(Ended { good: status.map_err(broken)?.success(), out, complaint })
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        let wanted = |name: &str| {
            BASIC.contains(&name)
                || self.environment.iter().any(|pattern| match pattern.strip_suffix('*') {
                    Some(begin) => name.starts_with(begin),
                    None => name == *pattern,
                })
        };
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(wanted)).collect()
    }
}

/// The first bytes of a pipe, and whether that was all. The rest is read and forgotten, so that nobody waits for a reader.
/// The buffer does not grow: no copy of a secret is left behind.
async fn bounded(mut pipe: impl AsyncRead + Unpin, max: usize) -> std::io::Result<(Zeroizing<Vec<u8>>, bool)> {
    let mut bytes = Zeroizing::new(vec![0; max + 1]);
    let mut length = 0;
    loop {
        let room = if length < bytes.len() { length.. } else { 0.. };
        let more = length >= bytes.len();
        let read = pipe.read(&mut bytes[room]).await?;
        match read {
            0 => break,
            _ if more => {}
            n => length += n,
        }
    }
    let all = length <= max;
    bytes.truncate(length.min(max));
    Ok((bytes, all))
}

/// The lines that say what is wrong: those that call themselves errors, else the first one. News and prompts stand beside them.
fn complaint(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let errors: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("[ERROR]")).collect();
    match errors[..] {
        [] => lines.first().copied().unwrap_or_default().to_owned(),
        _ => errors.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn shell<'a>(script: &'a str, args: &'a mut Vec<&'a str>, stdin: &'a [u8]) -> Call<'a> {
        *args = vec!["-c", script];
        Call {
            program: Path::new("/bin/sh"),
            args,
            environment: &[],
            set: &[("A", "b")],
            stdin,
            deadline: Duration::from_millis(400),
        }
    }

    /// Proves: Z1
    #[tokio::test]
    async fn a_program_gets_its_pipes_and_little_of_the_environment() {
        let mut args = vec![];
        let ended = shell("cat; env >&2; exit 3", &mut args, b"s3cret").run().await.unwrap();
        assert_eq!((ended.good, &ended.out[..]), (false, &b"s3cret"[..]));
        let mut args = vec![];
        let ended = shell("env", &mut args, b"").run().await.unwrap();
        let names = String::from_utf8_lossy(&ended.out).into_owned();
        for line in names.lines() {
            let name = line.split('=').next().unwrap();
            // The last are the shell's own.
            let known = BASIC.contains(&name) || ["A", "PWD", "SHLVL", "_", "OLDPWD"].contains(&name);
            assert!(known, "{name}");
        }
        assert!(names.contains("A=b") && std::env::var_os("CARGO_PKG_NAME").is_some() && !names.contains("CARGO"));
    }

    /// Proves: Z3
    #[tokio::test]
    async fn what_hangs_is_killed_with_all_that_it_has_started_and_what_floods_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! >{}; wait", pid.display());
        let mut args = vec![];
        let error = shell(&script, &mut args, b"").run().await.err().unwrap();
        assert!(matches!(error, CallError::Late(_)), "{error}");
        let child = PathBuf::from(format!("/proc/{}/stat", std::fs::read_to_string(&pid).unwrap().trim()));
        let gone = || std::fs::read_to_string(&child).map_or(true, |stat| stat.contains(") Z "));
        for _ in 0..100 {
            if gone() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(gone(), "a grandchild lives on");
        let mut args = vec![];
        let error = shell("head -c 300000 /dev/zero", &mut args, b"").run().await.err().unwrap();
        assert!(matches!(error, CallError::TooMuch(_)), "{error}");
        let mut args = vec![];
        let ended = shell("head -c 300000 /dev/zero >&2", &mut args, b"").run().await.unwrap();
        assert!(ended.good && ended.complaint.len() <= ERR_MAX);
        let nothing = Call { program: Path::new("/no/such/op"), ..shell("", &mut Vec::new(), b"") }.run().await;
        assert!(matches!(nothing, Err(CallError::NotThere(_))));
    }

    #[test]
    fn news_beside_an_error_is_not_taken_for_it() {
        let text = "A new version is available.\n[ERROR] 2026/11/30 10:00:00 \"x\" isn't an item.\n";
        assert_eq!(complaint(text), "[ERROR] 2026/11/30 10:00:00 \"x\" isn't an item.");
        assert_eq!((complaint("one\ntwo").as_str(), complaint("").as_str()), ("one", ""));
    }
}
