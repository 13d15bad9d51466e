//! Reads `[webhooks.NAME]`: who is told when a run ends.

use std::time::Duration;

use super::load::DAY;
use super::settings::{RunEnd, WebhookOut};
use super::table::{Section, is_loopback, shown};

/// A receiver that takes longer is given up on for this try: a webhook is taken and worked on later.
const REQUEST_MAX: Duration = Duration::from_secs(60);
const NAME_MAX: usize = 40;

/// `None` only where a mistake was told. `known`: the sites of the file, where they could be read.
pub(super) fn webhook(name: &str, t: Section<'_>, known: Option<&[&str]>) -> Option<WebhookOut> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let well_named = (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(plain);
    if !well_named {
        // It stands in figures, in the store and in messages.
        t.fault(format!("the name {} is not of at most {NAME_MAX} letters, digits, '-' and '_'", shown(name)));
    }
    let url = t.required("url").and_then(|item| item.url());
    if url.as_ref().is_some_and(|url| url.scheme() == "http" && !is_loopback(url)) {
        t.warn("url", "what is told travels in clear over http: names of hosts and what is wrong with them");
    }
    let secret = t.secret("secret");
    let trust = t.trust("trust");
    let timeout = t.seconds_or("timeout_s", Duration::from_secs(10), REQUEST_MAX);
    let outcomes = t.item("outcomes").map_or(Some(RunEnd::ALL.to_vec()), |item| {
        let texts = item.texts()?;
        let mut outcomes = Vec::new();
        for text in &texts {
            match RunEnd::ALL.into_iter().find(|end| end.as_str() == text) {
                Some(end) => outcomes.push(end),
                None => {
                    let known = RunEnd::ALL.map(RunEnd::as_str).join("', '");
                    return item.fault(format!("{} is not one of '{known}'", shown(text)));
                }
            }
        }
        if outcomes.is_empty() { item.fault("is empty: no end of a run would ever be told") } else { Some(outcomes) }
    });
    let sites = t.item("sites").map_or(Some(Vec::new()), |item| {
        let sites = item.texts()?;
        let stranger = known.and_then(|known| sites.iter().find(|site| !known.contains(&site.as_str())));
        match stranger {
            Some(site) => item.fault(format!("there is no site {} in this file", shown(site))),
            None => Some(sites),
        }
    });
    let give_up = t.seconds_or("give_up_s", DAY, DAY * 7);
    t.finish();
    well_named.then_some(())?;
    Some(WebhookOut { url: url?, secret: secret?, trust, timeout, outcomes: outcomes?, sites: sites?, give_up })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn read(table: &str) -> Result<WebhookOut, String> {
        let text = format!(
            "[netbox]\nurl = \"http://127.0.0.1\"\ntoken = \"env:T\"\n{table}\n[sites.osl1.gates]\nconfigure_dhcp = false\n"
        );
        parse(&text, "c").map(|settings| settings.webhooks["tickets"].clone()).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_webhook_needs_an_address_and_a_secret_and_tells_every_end_unless_told_otherwise() {
        let bare = "[webhooks.tickets]\nurl = \"https://h.example.com/x\"\nsecret = \"env:S\"\n";
        let all = read(bare).unwrap();
        assert_eq!((all.outcomes.as_slice(), all.sites.len()), (RunEnd::ALL.as_slice(), 0));
        assert_eq!((all.timeout, all.give_up), (Duration::from_secs(10), DAY));
        let some = read(&format!("{bare}outcomes = [\"failed\"]\nsites = [\"osl1\"]")).unwrap();
        assert!(some.tells(RunEnd::Failed, "osl1"));
        assert!(!some.tells(RunEnd::Succeeded, "osl1") && !some.tells(RunEnd::Failed, "zrh"));
        for (wrong, says) in [
            ("[webhooks.tickets]", "url: is missing"),
            ("[webhooks.tickets]\nurl = \"https://h\"", "secret: is missing"),
            ("[webhooks.tickets]\nurl = \"https://u:canary@h\"\nsecret = \"env:S\"", "credentials"),
            ("[webhooks.tickets]\nurl = \"https://h\"\nsecret = \"canary\"", "reference to a secret"),
            ("[webhooks.tickets]\nurl = \"https://h\"\nsecret = \"env:S\"\noutcomes = []", "no end of a run"),
            ("[webhooks.tickets]\nurl = \"https://h\"\nsecret = \"env:S\"\noutcomes = [\"broke\"]", "'cancelled'"),
            ("[webhooks.tickets]\nurl = \"https://h\"\nsecret = \"env:S\"\nsites = [\"nowhere\"]", "no site 'nowhere'"),
            ("[webhooks.\"a b\"]\nurl = \"https://h\"\nsecret = \"env:S\"", "letters, digits"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(says) && !error.contains("canary"), "{wrong}: {error}");
        }
    }
}
