//! `muster config init`: a first configuration of what is known, asked for or given by flags; without either, the example.

use std::fs::OpenOptions;
use std::io::{BufRead, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;

use super::args::{Init, Place};
use super::exit::{Ending, Exit};
use super::output;
use crate::config;
use crate::config::example::EXAMPLE;

/// What a first configuration needs to know.
struct Answers {
    site: String,
    netbox_url: String,
    token: String,
    ironic_url: String,
    device_classes: Vec<String>,
    dhcp_host: Option<String>,
    vault: String,
}

pub fn init(place: &Place, command: Init) -> Result<Exit, Ending> {
    let person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let given = command.netbox_url.is_some() || command.ironic_url.is_some() || place.site.is_some();
    if command.example || !given && !(person && (command.out.is_some() || std::io::stdout().is_terminal())) {
        return put(&command, EXAMPLE.trim_end());
    }
    let answers = answers(place, &command, person)?;
    let text = first(&answers);
    // What is written can be read: a URL or slug that is none is told here, with the question that it answers.
    config::parse(&text, "the configuration from these answers").map_err(|errors| {
        Ending::refused(errors.pointed())
            .with_action("give other answers, or begin with `muster config init --example`")
    })?;
    put(&command, text.trim_end())
}

fn answers(place: &Place, command: &Init, person: bool) -> Result<Answers, Ending> {
    let mut missing = Vec::new();
    let mut needed = |given: &Option<String>, flag: &'static str, question: &str| -> Result<String, Ending> {
        match given {
            Some(value) => Ok(value.clone()),
            None if person => ask(question, None),
            None => {
                missing.push(flag);
                Ok(String::new())
            }
        }
    };
    let site = needed(&place.site, "--site", "Slug of the site in NetBox")?;
    let netbox_url = needed(&command.netbox_url, "--netbox-url", "URL of NetBox")?;
    let ironic_url = needed(&command.ironic_url, "--ironic-url", "URL of Ironic")?;
    if !missing.is_empty() {
        return Err(Ending::refused(format!("{} not given, and there is nobody to ask", missing.join(" and ")))
            .with_action("give them as flags, or start it in a terminal"));
    }
    let or_default = |given: &Option<String>, question: &str, default: &str| match given {
        Some(value) => Ok(value.clone()),
        None if person => ask(question, Some(default)),
        None => Ok(default.to_owned()),
    };
    let token = or_default(&command.token, "Where NetBox's token is (env:NAME or file:PATH)", "env:NETBOX_TOKEN")?;
    let vault = or_default(&command.vault, "File of the vault (env: variables of the environment)", "vault.toml")?;
    let dhcp = or_default(&command.dhcp_host, "DHCP host of the site (none: DHCP is left alone)", "none")?;
    let device_classes = match command.device_classes.as_slice() {
        [] => vec!["COMPUTE_GPU".to_owned(), "COMPUTE_CPU".to_owned()],
        given => given.to_vec(),
    };
    let dhcp_host = Some(dhcp).filter(|host| host != "none");
    Ok(Answers { site, netbox_url, token, ironic_url, device_classes, dhcp_host, vault })
}

/// Asks a person. An empty answer is the default; without one it is asked again.
fn ask(question: &str, default: Option<&str>) -> Result<String, Ending> {
    loop {
        let mut err = std::io::stderr().lock();
        match default {
            Some(default) => write!(err, "{question} [{default}]: "),
            None => write!(err, "{question}: "),
        }
        .and_then(|()| err.flush())
        .ok();
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        match (read, line.trim(), default) {
            (Err(_) | Ok(0), ..) => return Err(Ending::refused("the questions were left unanswered")),
            (_, "", Some(default)) => return Ok(default.to_owned()),
            (_, "", None) => {}
            (_, answer, _) => return Ok(answer.to_owned()),
        }
    }
}

/// A configuration of these answers, which the example says the rest of.
fn first(answers: &Answers) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let site = &answers.site;
    let classes: Vec<String> = answers.device_classes.iter().map(|class| quoted(class)).collect();
    let mut text = format!(
        "# Every other key and its default: muster config init --example\n\n\
         [netbox]\nurl = {}\ntoken = {}\n\n",
        quoted(&answers.netbox_url),
        quoted(&answers.token)
    );
    text += "# Credentials of BMCs and of the DHCP host, by item and field.\n[vault]\n";
    text += &match answers.vault.as_str() {
        "env" => "kind = \"env\"\n".to_owned(),
        path => format!("kind = \"file\"\npath = {}\n", quoted(path)),
    };
    text += &format!(
        "\n[ironic.main]\nurl = {}\ndevice_classes = [{}]\n\
         # or kind = \"http_basic\" with 'username' and 'password', or kind = \"keystone\"\nauth = {{ kind = \"none\" }}\n",
        quoted(&answers.ironic_url),
        classes.join(", ")
    );
    match &answers.dhcp_host {
        Some(host) => text += &format!("\n[sites.{site}.dhcp]\nhost = {}\n", quoted(host)),
        None => text += &format!("\n[sites.{site}.gates]\nconfigure_dhcp = false\n"),
    }
    text
}

/// To the file that is named, which must be a new one, or to standard output.
fn put(command: &Init, text: &str) -> Result<Exit, Ending> {
    let Some(path) = &command.out else {
        output::line(text);
        return Ok(Exit::Done);
    };
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Ending::refused(format!("'{}' is there already", path.display()))
            .with_action("name another file, or take that one away first"),
        _ => Ending::failed(format!("'{}' cannot be written: {e}", path.display())),
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    writeln!(file, "{text}").and_then(|()| file.sync_all()).map_err(failed)?;
    output::line(&format!(
        "written: '{}'; check it with `muster config check`, and the site with `muster doctor`",
        path.display()
    ));
    Ok(Exit::Done)
}
