//! Resolves who is asked for pods.

use std::{net::IpAddr, path::Path};

use super::{ConfigError, Places};
use crate::{
    cli::Flags,
    procs::kubernetes::{Source, Trust},
};

/// Where pods have what their service account may show:
/// <https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/>.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The kubelet's usual port.
const PORT: u16 = 10250;

impl Places {
    pub(super) fn kubernetes(&self, flags: &Flags) -> Result<Option<Source>, ConfigError> {
        self.pods_source(flags, std::env::var("NODE_IP").ok().as_deref(), Path::new(SERVICE_ACCOUNT))
    }

    fn pods_source(
        &self,
        flags: &Flags,
        node_ip: Option<&str>,
        service_account: &Path,
    ) -> Result<Option<Source>, ConfigError> {
        let of_kubelet = flags.first_of(&["kubernetes-token", "kubernetes-ca"]);
        let Some(text) = &flags.kubernetes else {
            return match of_kubelet {
                Some(key) => Err(self.invalid(key, "nobody is asked for pods: give --kubernetes too")),
                None => Ok(None),
            };
        };
        let invalid = |cause: &str| self.invalid("kubernetes", format!("\"{}\" {cause}", text.escape_debug()));
        if let Some(socket) = text.strip_prefix("unix://").or_else(|| text.starts_with('/').then_some(text)) {
            return match of_kubelet {
                Some(key) => Err(self.conflict(key, "kubernetes", "container runtimes ask for nothing")),
                None => Ok(Some(Source::Cri(socket.into()))),
            };
        }
        let url = if text == "kubelet" {
            let address = node_ip.unwrap_or("127.0.0.1");
            match address.parse::<IpAddr>() {
                Ok(IpAddr::V4(address)) => format!("https://{address}:{PORT}"),
                Ok(IpAddr::V6(address)) => format!("https://[{address}]:{PORT}"),
                Err(_) => {
                    let shown = address.escape_debug();
                    return Err(
                        self.invalid("kubernetes", format!("NODE_IP is \"{shown}\", which is not an IP address"))
                    );
                }
            }
        } else {
            text.trim_end_matches('/').to_owned()
        };
        if !url.starts_with("https://") && !url.starts_with("http://") {
            return Err(invalid("is not kubelet, an address such as https://127.0.0.1:10250, or the path of a socket"));
        }
        let trust = match &flags.kubernetes_ca {
            Some(file) if file == "none" => Trust::Anyone,
            Some(file) => Trust::Authority(file.clone()),
            // Those that the system trusts sign no kubelet's.
            None => Trust::Authority(service_account.join("ca.crt")),
        };
        let of_account = Some(service_account.join("token")).filter(|path| path.exists());
        let token = flags.kubernetes_token.clone().or(of_account);
        Ok(Some(Source::Kubelet { url, token, trust }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    fn source(line: &str, node_ip: Option<&str>, is_pod: bool) -> Result<Option<Source>, String> {
        let account = tempfile::tempdir().unwrap();
        if is_pod {
            for file in ["token", "ca.crt"] {
                std::fs::write(account.path().join(file), "").unwrap();
            }
        }
        let arguments = ["joular-bpf", "--all"].into_iter().chain(line.split_whitespace());
        let flags = cli::parse(arguments.map(Into::into)).unwrap().flags;
        let found = Places::typed(&flags).pods_source(&flags, node_ip, account.path());
        let shorter = |path: &Path| path.strip_prefix(account.path()).unwrap_or(path).to_owned();
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.map(|source| match source {
            Source::Kubelet { url, token, trust } => {
                let trust = match trust {
                    Trust::Authority(path) => Trust::Authority(shorter(&path)),
                    Trust::Anyone => Trust::Anyone,
                };
                Source::Kubelet { url, token: token.as_deref().map(shorter), trust }
            }
            cri @ Source::Cri(_) => cri,
        }))
    }

    fn kubelet(url: &str, token: Option<&str>, ca: Option<&str>) -> Source {
        let trust = ca.map_or(Trust::Anyone, |path| Trust::Authority(path.into()));
        Source::Kubelet { url: url.to_owned(), token: token.map(Into::into), trust }
    }

    #[test]
    fn a_pods_kubelet_is_found_by_the_nodes_address_and_shown_the_service_accounts_token() {
        for (line, node_ip, is_pod, expected) in [
            ("", Some("10.0.0.5"), true, None),
            (
                "--kubernetes",
                Some("10.0.0.5"),
                true,
                Some(kubelet("https://10.0.0.5:10250", Some("token"), Some("ca.crt"))),
            ),
            (
                "--kubernetes kubelet",
                Some("fd00::5"),
                true,
                Some(kubelet("https://[fd00::5]:10250", Some("token"), Some("ca.crt"))),
            ),
            (
                "--kubernetes kubelet --kubernetes-ca none",
                None,
                false,
                Some(kubelet("https://127.0.0.1:10250", None, None)),
            ),
            (
                "--kubernetes https://node:1/ --kubernetes-token /t --kubernetes-ca /c",
                None,
                true,
                Some(kubelet("https://node:1", Some("/t"), Some("/c"))),
            ),
            (
                "--kubernetes http://127.0.0.1:10255",
                None,
                false,
                Some(kubelet("http://127.0.0.1:10255", None, Some("ca.crt"))),
            ),
            ("--kubernetes /run/crio.sock", None, true, Some(Source::Cri("/run/crio.sock".into()))),
            ("--kubernetes unix:///run/crio.sock", None, true, Some(Source::Cri("/run/crio.sock".into()))),
        ] {
            assert_eq!(source(line, node_ip, is_pod).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn what_leads_to_nobody_is_refused() {
        for (line, node_ip, expected) in [
            ("--kubernetes-token /t", None, "--kubernetes-token: nobody is asked for pods"),
            ("--kubernetes ftp://x", None, "--kubernetes: \"ftp://x\" is not kubelet, an address such as"),
            ("--kubernetes", Some("node 1"), "--kubernetes: NODE_IP is \"node 1\", which is not an IP address"),
            (
                "--kubernetes /s --kubernetes-ca none",
                None,
                "--kubernetes-ca cannot be used with --kubernetes: container",
            ),
        ] {
            let error = source(line, node_ip, false).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
