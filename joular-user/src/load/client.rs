//! Asks ClickHouse over HTTP: <https://clickhouse.com/docs/en/interfaces/http>.
//!
//! Settings are parameters of the address, user and password are headers, and the data of an `INSERT` is the body. The
//! answer comes when all is done (`wait_end_of_query`), so its status counts.

#[cfg(feature = "clickhouse")]
pub(super) use real::Client;

#[cfg(feature = "clickhouse")]
mod real {
    use std::{fs, time::Duration};

    use form_urlencoded::Serializer;
    use joular_data::{
        loading::{Warehouse, WarehouseError},
        text::with_causes,
    };
    use reqwest::{
        Certificate, Client as Http, RequestBuilder,
        header::{HeaderMap, HeaderName, HeaderValue},
        redirect::Policy,
    };
    use tokio::runtime::{Builder, Runtime};

    use super::super::{Loading, LoadingError, Login, answer::judged};

    const CONNECT: Duration = Duration::from_secs(10);
    /// For an answer: the views of a batch take seconds.
    const TIME: Duration = Duration::from_secs(300);
    /// Longest answer that is read: rows of 32 runs, or of the batches of an hour.
    const MAX_ANSWER_BYTES: usize = 64 << 20;
    const USER: HeaderName = HeaderName::from_static("x-clickhouse-user");
    const PASSWORD: HeaderName = HeaderName::from_static("x-clickhouse-key");
    const ERROR: HeaderName = HeaderName::from_static("x-clickhouse-exception-code");

    pub(in super::super) struct Client {
        runtime: Runtime,
        http: Http,
        url: String,
    }

    impl Client {
        pub(in super::super) fn new(loading: &Loading, login: Option<Login>) -> Result<Self, LoadingError> {
            // Whoever was first has installed the same.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let failed = |cause: String| LoadingError::Client { url: loading.url.clone(), cause };
            let mut headers = HeaderMap::new();
            for (name, text) in login.into_iter().flat_map(|login| [(USER, login.user), (PASSWORD, login.password)]) {
                let mut value = HeaderValue::from_str(&text)
                    .map_err(|_| failed(format!("{name}: it has characters that HTTP does not take")))?;
                value.set_sensitive(true);
                headers.insert(name, value);
            }
            // User and password are the server's alone, so nothing is sent on to where an answer points.
            let mut http = Http::builder().default_headers(headers).redirect(Policy::none());
            http = http.connect_timeout(CONNECT).timeout(TIME);
            if let Some(path) = &loading.authority {
                let read = |source| LoadingError::Authority { path: path.clone(), source };
                let trusted = Certificate::from_pem_bundle(&fs::read(path).map_err(read)?);
                http = http.tls_certs_only(trusted.map_err(|error| failed(with_causes(&error)))?);
            }
            let runtime =
                Builder::new_current_thread().enable_all().build().map_err(|error| failed(error.to_string()))?;
            let http = http.build().map_err(|error| failed(with_causes(&error)))?;
            Ok(Self { runtime, http, url: loading.url.clone() })
        }

        fn request(&self, parameters: &[(&str, &str)]) -> RequestBuilder {
            let all = [&[("wait_end_of_query", "1")], parameters].concat();
            let query = Serializer::new(String::new()).extend_pairs(all).finish();
            self.http.post(format!("{}/?{query}", self.url))
        }

        fn answer(&self, request: RequestBuilder) -> Result<String, WarehouseError> {
            let later = |error: reqwest::Error| {
                let cause = with_causes(&error.without_url());
                WarehouseError::Later(format!("{cause}: check the address, and that ClickHouse runs there"))
            };
            self.runtime.block_on(async {
                let mut answer = request.send().await.map_err(later)?;
                let code = answer.headers().get(ERROR).and_then(|code| code.to_str().ok()?.parse().ok());
                let mut bytes = Vec::new();
                while let Some(chunk) = answer.chunk().await.map_err(later)? {
                    if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
                        return Err(WarehouseError::Refused("its answer is longer than 64 MiB".to_owned()));
                    }
                    bytes.extend_from_slice(&chunk);
                }
                judged(answer.status().as_u16(), code, String::from_utf8_lossy(&bytes).into_owned())
            })
        }
    }

    impl Warehouse for Client {
        fn ask(&self, sql: &str) -> Result<String, WarehouseError> {
            // A list of runs may be longer than an address.
            self.answer(self.request(&[]).body(sql.to_owned()))
        }

        fn insert(&self, sql: &str, settings: &[(&str, &str)], data: Vec<u8>) -> Result<(), WarehouseError> {
            let parameters = [&[("query", sql)], settings].concat();
            self.answer(self.request(&parameters).body(data)).map(drop)
        }
    }
}

#[cfg(not(feature = "clickhouse"))]
pub(super) use absent::Client;

#[cfg(not(feature = "clickhouse"))]
mod absent {
    use joular_data::loading::{Warehouse, WarehouseError};

    use super::super::{Loading, LoadingError, Login};

    pub(in super::super) struct Client;

    impl Client {
        pub(in super::super) fn new(loading: &Loading, _login: Option<Login>) -> Result<Self, LoadingError> {
            let cause = "this joular-bpf was built without the feature clickhouse".to_owned();
            Err(LoadingError::Client { url: loading.url.clone(), cause })
        }
    }

    impl Warehouse for Client {
        fn ask(&self, _sql: &str) -> Result<String, WarehouseError> {
            Ok(String::new())
        }

        fn insert(&self, _sql: &str, _settings: &[(&str, &str)], _data: Vec<u8>) -> Result<(), WarehouseError> {
            Ok(())
        }
    }
}
