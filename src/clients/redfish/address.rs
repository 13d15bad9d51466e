//! Makes the URL that a BMC is asked at from an address, or from what NetBox names instead of one.

use std::net::IpAddr;

use url::Url;

/// The base for an out-of-band address. IPv6 is put in brackets.
pub fn base_of(address: IpAddr, scheme: &str, port: Option<u16>) -> Result<Url, url::ParseError> {
    let host = match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    };
    with_port(&format!("{scheme}://{host}"), port)
}

/// The base for a written address (`https://bmc.example.com:8443`, `192.0.2.7:8000`, `2001:db8::7`): its own scheme and
/// port where it has them, those of the site where not. A path in it is dropped: links of a BMC are absolute.
pub fn base_of_text(text: &str, scheme: &str, port: Option<u16>) -> Result<Url, url::ParseError> {
    let text = text.trim();
    if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return base_of(address, scheme, port);
    }
    if !text.contains("://") {
        let url = Url::parse(&format!("{scheme}://{text}"))?;
        // `host:443` under https parses as no port at all: the text decides whether one was named.
        let named = text.rsplit_once(':').is_some_and(|(_, digits)| digits.parse::<u16>().is_ok());
        return with_port(bare(url).as_str(), port.filter(|_| !named));
    }
    Ok(bare(Url::parse(text)?))
}

fn bare(mut url: Url) -> Url {
    url.set_path("/");
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn with_port(text: &str, port: Option<u16>) -> Result<Url, url::ParseError> {
    let mut url = Url::parse(text)?;
    if port.is_some() && url.set_port(port).is_err() {
        return Err(url::ParseError::EmptyHost);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        let v6 = "2001:db8::7".parse().unwrap();
        assert_eq!(base_of(v6, "https", None).unwrap().as_str(), "https://[2001:db8::7]/");
        assert_eq!(base_of(v6, "https", Some(8443)).unwrap().as_str(), "https://[2001:db8::7]:8443/");
        let v4 = "192.0.2.7".parse().unwrap();
        assert_eq!(base_of(v4, "http", Some(8000)).unwrap().as_str(), "http://192.0.2.7:8000/");
    }

    #[test]
    fn a_written_address_keeps_what_it_names_and_gets_the_rest_of_the_site() {
        let table = [
            ("http://127.0.0.1:8000/redfish/v1", "http://127.0.0.1:8000/"),
            ("https://bmc.example.com", "https://bmc.example.com/"),
            ("127.0.0.1:8000", "https://127.0.0.1:8000/"),
            ("bmc.example.com", "https://bmc.example.com:8443/"),
            ("2001:db8::7", "https://[2001:db8::7]:8443/"),
            ("[2001:db8::7]:443", "https://[2001:db8::7]/"),
        ];
        for (text, url) in table {
            assert_eq!(base_of_text(text, "https", Some(8443)).unwrap().as_str(), url, "{text}");
        }
        assert!(base_of_text("http://", "https", None).is_err());
    }
}
