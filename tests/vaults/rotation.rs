//! Secrets that go with every request: one that is rotated while muster runs is read anew when it is refused.

use muster::clients::ironic::Ironic;
use muster::clients::netbox::NetBox;
use serde_json::json;
use wiremock::matchers::{header, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::{private, vault};

/// Proves: K2
#[tokio::test]
async fn a_rotated_token_and_a_rotated_password_are_seen_by_the_second_use() {
    let folder = tempfile::tempdir().unwrap();
    let write = |token: &str, password: &str| {
        let text = format!("[netbox]\ntoken = \"{token}\"\n[ironic]\npassword = \"{password}\"\n");
        private(folder.path(), "vault.toml", &text)
    };
    write("nbt_old.one", "old");
    let server = MockServer::start().await;
    let text = format!(
        "[netbox]\nurl = \"{0}\"\ntoken = \"vault:netbox/token\"\n[vault]\nkind = \"file\"\npath = \"{1}\"\n[ironic.lab]\nurl = \"{0}\"\n\
         device_classes = [\"A\"]\nauth = {{ kind = \"http_basic\", username = \"m\", password = \"vault:ironic/password\" }}\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n",
        server.uri(),
        folder.path().join("vault.toml").display()
    );
    let settings = muster::config::parse(&text, "rotation.toml").unwrap_or_else(|e| panic!("{e}"));
    let vault = vault(settings.vault.kind.clone());
    let token = vault.resolve(&settings.netbox.token).await.unwrap();
    let netbox = NetBox::new(&settings.netbox, token).unwrap().renewing(&vault, &settings.netbox.token);
    let ironic = Ironic::new("lab", &settings.ironic["lab"], &vault).unwrap();

    let good = |place: &str, authorization: &str, body: serde_json::Value| {
        Mock::given(path(place))
            .and(header("authorization", authorization))
            .respond_with(ResponseTemplate::new(200).set_body_json(body))
    };
    let who = || json!({"id": 1, "username": "muster", "groups": [], "permissions": []});
    let nodes = || json!({"nodes": []});
    // Whatever comes with another secret is refused.
    let takes = async |token: &str, basic: &str| {
        server.reset().await;
        let versions = json!({"default_version": {"id": "v1", "min_version": "1.1", "version": "1.95"}});
        Mock::given(path("/")).respond_with(ResponseTemplate::new(200).set_body_json(versions)).mount(&server).await;
        let refusal = ResponseTemplate::new(403).set_body_json(json!({"detail": "Invalid v2 token"}));
        Mock::given(path("/api/authentication-check/")).respond_with(refusal).with_priority(9).mount(&server).await;
        Mock::given(path("/v1/nodes")).respond_with(ResponseTemplate::new(401)).with_priority(9).mount(&server).await;
        good("/api/authentication-check/", token, who()).mount(&server).await;
        good("/v1/nodes", basic, nodes()).mount(&server).await;
    };
    takes("Bearer nbt_old.one", "Basic bTpvbGQ=").await;
    netbox.account().await.unwrap();
    ironic.sees_nodes().await.unwrap();
    takes("Bearer nbt_new.two", "Basic bTpuZXc=").await;
    write("nbt_new.two", "new");
    netbox.account().await.unwrap();
    ironic.sees_nodes().await.unwrap();

    // One that is refused for good is asked for once, and not again with every request.
    server.reset().await;
    let refusal = ResponseTemplate::new(403).set_body_json(json!({"detail": "Invalid v2 token"}));
    Mock::given(path("/api/authentication-check/")).respond_with(refusal).mount(&server).await;
    for _ in 0..3 {
        netbox.account().await.unwrap_err();
    }
    let sent: Vec<String> = server
        .received_requests()
        .await
        .unwrap()
        .iter()
        .map(|r| format!("{} {:?}", r.url.path(), r.headers.get("authorization").unwrap()))
        .collect();
    assert_eq!(sent.len(), 3, "the same token is not sent a second time: {sent:?}");
}
