//! Which systems of a site are asked without a look at their certificate: a choice of the configuration that has to be seen.

use super::settings::{IronicAuth, KeystoneAccount, NatsSettings, Settings, Trust, VaultKind};

impl Settings {
    /// Those of a site, by the words that people have for them: its BMCs, the Ironics that serve it, and what serves all
    /// sites. None: every certificate is checked.
    pub fn unchecked(&self, site: &str) -> Vec<String> {
        let is_out = |scheme: &str, trust: &Trust| scheme == "https" && *trust == Trust::Anything;
        let mut found = Vec::new();
        let mut put = |out: bool, name: String| found.extend(out.then_some(name));
        let own = self.sites.get(site);
        if let Some(bmc) = own.map(|site| &site.bmc) {
            put(is_out(&bmc.scheme, &bmc.trust), "BMCs".to_owned());
        }
        let serves = |name: &String| own.is_none_or(|site| site.ironic.is_empty() || site.ironic.contains(name));
        for (name, ironic) in self.ironic.iter().filter(|(name, _)| serves(name)) {
            // Keystone is asked under the same trust.
            let keystone = match &ironic.auth {
                IronicAuth::Keystone(auth) => match &auth.account {
                    KeystoneAccount::Given { auth_url, .. } => is_out(auth_url.scheme(), &ironic.trust),
                    // Which Keystone it is is not known before it is asked.
                    KeystoneAccount::Cloud { .. } | KeystoneAccount::Environment => is_out("https", &ironic.trust),
                },
                _ => false,
            };
            let own = ironic.url.as_ref().is_some_and(|url| is_out(url.scheme(), &ironic.trust));
            put(own || keystone, format!("Ironic {name}"));
        }
        put(is_out(self.netbox.url.scheme(), &self.netbox.trust), "NetBox".to_owned());
        if let VaultKind::Connect(connect) = &self.vault.kind {
            put(is_out(connect.url.scheme(), &connect.trust), "vault".to_owned());
        }
        let postgres = self.push.as_ref().and_then(|push| push.postgres.as_ref());
        put(postgres.is_some_and(|p| p.tls && p.trust == Trust::Anything), "NetBox's database".to_owned());
        let by_tls = |nats: &NatsSettings| nats.servers.iter().any(|url| url.scheme() == "tls");
        put(self.nats.as_ref().is_some_and(|nats| by_tls(nats) && nats.trust == Trust::Anything), "NATS".to_owned());
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    fn of(text: &str, site: &str) -> Vec<String> {
        parse(text, "muster.toml").unwrap_or_else(|e| panic!("{e}")).unchecked(site)
    }

    /// Proves: B20
    #[test]
    fn a_site_has_its_own_opt_outs_and_those_of_what_serves_it() {
        let ironic = |name: &str, trust: &str| {
            format!(
                "[ironic.{name}]\nurl = \"https://{name}.example.com\"\ndevice_classes = [\"{name}\"]\n\
                 auth = {{ kind = \"none\" }}\ntrust = \"{trust}\"\n"
            )
        };
        let text = format!(
            "[netbox]\nurl = \"https://netbox.example.com\"\ntoken = \"env:T\"\n{}{}\
             [sites.osl1]\nironic = [\"gpu\"]\ngates = {{ configure_dhcp = false }}\nbmc = {{ trust = \"anything\" }}\n\
             [sites.ams2]\nironic = [\"cpu\"]\ngates = {{ configure_dhcp = false }}\n",
            ironic("gpu", "anything"),
            ironic("cpu", "system")
        );
        assert_eq!(of(&text, "osl1"), ["BMCs", "Ironic gpu"]);
        assert_eq!(of(&text, "ams2"), [""; 0]);
        let everywhere = text.replace("token = \"env:T\"", "token = \"env:T\"\ntrust = \"anything\"");
        assert_eq!(of(&everywhere, "ams2"), ["NetBox"]);
        let emulated = text.replace("bmc = { trust", "bmc = { scheme = \"http\", trust");
        assert_eq!(of(&emulated, "osl1"), ["Ironic gpu"], "there is no certificate to check");
    }
}
