//! Looks at the receivers of webhooks: whether their secrets are there, whether anything answers, and what the process that
//! leads last said of its deliveries. None of them is told anything.

use std::path::Path;

use super::{Check, Level};
use crate::app::webhooks::SYSTEM;
use crate::clients::http::HttpError;
use crate::clients::vault::Vault;
use crate::clients::webhook::{Receiver, signature};
use crate::config::settings::{Settings, WebhookOut};
use crate::domain::text::neutralize_to;
use crate::store::health_in;

/// `state`: the folder whose store is looked into, where there is one.
pub(super) async fn look(settings: &Settings, vault: &Vault, state: Option<&Path>, tell: &mut dyn FnMut(Check)) {
    for (name, webhook) in &settings.webhooks {
        tell(secret(name, webhook, vault).await);
        tell(answer(name, webhook, vault).await);
        if let Some(check) = state.and_then(|state| deliveries(name, state)) {
            tell(check);
        }
    }
}

async fn secret(name: &str, webhook: &WebhookOut, vault: &Vault) -> Check {
    let check = format!("webhook.{name}.secret");
    match vault.resolve(&webhook.secret).await {
        Ok(secret) if signature(&secret, "", "", b"").is_none() => {
            let message = format!("{} begins with 'whsec_' and does not go on in base64", webhook.secret);
            Check::to_mend(Level::Fail, check, message, "put the secret there as its receiver has it")
        }
        Ok(_) => Check::ok(check, format!("{} is there", webhook.secret)),
        Err(error) => super::vault::unasked(&check, &error),
    }
}

/// Any answer will do: what it is to other requests than deliveries is the receiver's own matter.
async fn answer(name: &str, webhook: &WebhookOut, vault: &Vault) -> Check {
    let check = format!("webhook.{name}.answer");
    let asked = match Receiver::new(webhook, vault) {
        Ok(receiver) => receiver.look().await,
        Err(error) => Err(error),
    };
    match asked {
        Ok(status) => Check::ok(check, format!("'{}' answers ({status})", host(webhook))),
        Err(error) => {
            let level = match &error {
                HttpError::Tls { .. } | HttpError::Setup { .. } => Level::Fail,
                _ => Level::Unknown,
            };
            let action = format!("look at that receiver and at [webhooks.{name}]");
            Check::to_mend(level, check, error.to_string(), action)
        }
    }
}

/// `None`: nobody has led with this receiver yet.
fn deliveries(name: &str, state: &Path) -> Option<Check> {
    let check = format!("webhook.{name}.deliveries");
    let systems = match health_in(state) {
        Ok(systems) => systems?,
        Err(error) => {
            let action = "look at the state folder, as the user that muster runs under";
            return Some(Check::to_mend(Level::Unknown, check, error.to_string(), action));
        }
    };
    let health = systems.into_iter().find(|health| health.key == format!("{SYSTEM}{name}"))?;
    Some(match health.error {
        None => Check::ok(check, "no end of a run waits to be told"),
        Some(error) => {
            let since = health.ok_at.map_or(String::new(), |at| format!(" (all was told at {at:.0})"));
            let action = format!("look at that receiver and at [webhooks.{name}]");
            Check::to_mend(Level::Fail, check, format!("{}{since}", neutralize_to(&error, 400)), action)
        }
    })
}

fn host(webhook: &WebhookOut) -> String {
    webhook.url.host_str().unwrap_or_default().to_owned()
}
