//! A shop of two routes on frameworks and servers that nobody here wrote. An order takes three times the work of a cart, and
//! nothing else of the same size: what these cost is known. The frameworks are Debian's packages, unpacked and not installed.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    containers::{image::Image, podman::Podman},
    debian::Packages,
    java,
    jdk::Jdk,
    paths,
    process::Running,
};

/// Times the work of a cart.
pub const RATIO: f64 = 3.0;

/// A cold JVM on a loaded machine.
const STARTED: Duration = Duration::from_secs(120);
/// Longer than loads take on a machine that has little time for them.
const LOADED: Duration = Duration::from_secs(180);
/// Of a load, together.
pub const CONNECTIONS: u32 = 4;

/// Packages of Debian 12 with what shops run on, and what asks them.
const PACKAGES: [&str; 26] = [
    "libaopalliance-java",
    "libactivation-java",
    "libcommons-logging-java",
    "libgeronimo-annotation-1.3-spec-java",
    "libgrpc-java",
    "libguava-java",
    "libjaxb-api-java",
    "libjaxrs-api-java",
    "libjboss-logging-java",
    "libjersey1-core-java",
    "libjersey1-server-java",
    "libjersey1-servlet-java",
    "libjetty9-java",
    "libjsr311-api-java",
    "libnetty-java",
    "libperfmark-java",
    "libresteasy3.0-java",
    "libservlet-api-java",
    "libspring-aop-java",
    "libspring-beans-java",
    "libspring-context-java",
    "libspring-core-java",
    "libspring-expression-java",
    "libspring-web-java",
    "libspring-web-servlet-java",
    "wrk",
];
/// The library that `wrk` runs scripts with.
const LUA: &str = "libluajit-5.1-2";

const JETTY: [&str; 7] =
    ["jetty9-server", "jetty9-servlet", "jetty9-security", "jetty9-http", "jetty9-io", "jetty9-util", "servlet-api"];
const SPRING: [&str; 9] = [
    "spring3-core",
    "spring3-beans",
    "spring3-context",
    "spring3-expression",
    "spring3-aop",
    "spring3-web",
    "spring3-web.servlet",
    "commons-logging",
    "aopalliance",
];
const RESTEASY: [&str; 4] = ["resteasy-jaxrs", "jaxrs-api", "jboss-logging", "geronimo-annotation-1.3-spec"];
const JERSEY: [&str; 6] =
    ["jersey1-core", "jersey1-server", "jersey1-servlet", "jsr311-api", "jaxb-api", "javax.activation"];
const GRPC: [&str; 15] = [
    "grpc-api",
    "grpc-core",
    "grpc-context",
    "grpc-stub",
    "grpc-netty",
    "netty-buffer",
    "netty-codec",
    "netty-codec-http",
    "netty-codec-http2",
    "netty-common",
    "netty-handler",
    "netty-resolver",
    "netty-transport",
    "guava",
    "perfmark-api",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    Servlets,
    SpringMvc,
    Resteasy,
    Jersey,
    JdkServer,
    Grpc,
}

/// What asks a shop for both routes equally often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// One program that asks for both in turn.
    Wrk,
    /// Two programs, one for each route.
    Ab,
    /// Clients of gRPC.
    Client,
}

impl Framework {
    /// The methods that people wrote for a cart and an order.
    pub const fn handlers(self) -> [&'static str; 2] {
        match self {
            Self::Servlets => ["shop.CartServlet.doGet", "shop.OrderServlet.doGet"],
            Self::SpringMvc => ["shop.SpringMvc$CartController.add", "shop.SpringMvc$OrderController.update"],
            Self::Resteasy | Self::Jersey => ["shop.Resources$CartResource.add", "shop.Resources$OrderResource.update"],
            Self::JdkServer => ["shop.JdkServer$CartHandler.handle", "shop.JdkServer.order"],
            Self::Grpc => ["shop.CartService.add", "shop.OrderService.place"],
        }
    }

    /// The method of a job that is done beside requests.
    pub const fn job(self) -> Option<&'static str> {
        match self {
            Self::SpringMvc => Some("shop.SpringMvc$Cleaner.sweep"),
            _ => None,
        }
    }

    /// Whether a runtime has what it needs: the pinned JDK 11 has no HTTP server.
    pub const fn runs_on(self, release: u32) -> bool {
        !matches!(self, Self::JdkServer) || release > 11
    }

    /// Names of jars.
    fn jars(self) -> Vec<&'static str> {
        match self {
            Self::Servlets => JETTY.to_vec(),
            Self::SpringMvc => [&JETTY[..], &SPRING].concat(),
            Self::Resteasy => [&JETTY[..], &RESTEASY].concat(),
            Self::Jersey => [&JETTY[..], &JERSEY].concat(),
            Self::JdkServer => Vec::new(),
            Self::Grpc => GRPC.to_vec(),
        }
    }

    /// Compiled first if a source is newer, and then the jars.
    fn class_path(self) -> Result<Vec<PathBuf>> {
        let jars = self.jars().into_iter().map(jar).collect::<Result<Vec<_>>>()?;
        let classes = paths::target().join("fixtures/shop").join(format!("{self:?}"));
        java::compile_class(&sources(), &format!("{self:?}.java"), &joined(&jars), &classes)?;
        Ok([vec![classes], jars].concat())
    }

    fn main_class(self) -> String {
        format!("shop.{self:?}")
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Servlets => "servlets on Jetty",
            Self::SpringMvc => "Spring MVC on Jetty",
            Self::Resteasy => "RESTEasy on Jetty",
            Self::Jersey => "Jersey 1 on Jetty",
            Self::JdkServer => "the JDK's HTTP server",
            Self::Grpc => "gRPC on Netty",
        })
    }
}

/// Whether everything is unpacked that shops run on, and is asked by.
pub fn are_unpacked() -> bool {
    PACKAGES.into_iter().chain([LUA]).all(|package| directory().join(package).exists())
}

/// Downloads and unpacks what is missing; needs a Debian package manager, and no privileges.
pub fn unpack() -> Result<()> {
    PACKAGES.into_iter().chain([LUA]).try_for_each(|package| Packages::own().unpack(&directory(), package).map(drop))
}

fn directory() -> PathBuf {
    paths::target().join("frameworks")
}

fn sources() -> PathBuf {
    paths::fixtures().join("servers/shop")
}

/// The file of a jar, which is a link with some packages.
fn jar(name: &str) -> Result<PathBuf> {
    let inside = |package: &str| directory().join(package).join(format!("usr/share/java/{name}.jar"));
    let found = PACKAGES.into_iter().map(inside).find_map(|path| path.canonicalize().ok());
    found.with_context(|| format!("no {name}.jar in {} (`cargo xtask setup --slow`)", directory().display()))
}

fn joined(class_path: &[PathBuf]) -> String {
    class_path.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":")
}

/// One that is open. Its JVM ends when it is dropped.
pub struct Shop {
    /// Of its JVM, as this machine sees it.
    pub pid: u32,
    port: u16,
    pub framework: Framework,
    _place: Place,
}

enum Place {
    Process { _jvm: Running },
    Container { _engine: Podman },
}

impl Shop {
    pub fn open(framework: Framework, java: &Path, flags: &[&str]) -> Result<Self> {
        let mut command = Command::new(java);
        let class_path = joined(&framework.class_path()?);
        command.args(["-Xmx256m", "-cp", &class_path]).args(flags).arg(framework.main_class());
        let mut jvm = Running::spawn(&framework.to_string(), &mut command)?;
        let port = port(&jvm.wait_stdout("port ", STARTED)?)?;
        Ok(Self { pid: jvm.pid(), port, framework, _place: Place::Process { _jvm: jvm } })
    }

    /// In a container, with the network of this machine.
    pub fn open_in_container(framework: Framework, jdk: &Jdk) -> Result<Self> {
        const IMAGE: &str = "localhost/shop:1";
        let image = Image::of(jdk)?;
        let mut inside = Vec::new();
        for (index, path) in framework.class_path()?.iter().enumerate() {
            let place = format!("/shop/{index}{}", if path.is_dir() { "" } else { ".jar" });
            image.put(path, &place)?;
            inside.push(PathBuf::from(place));
        }
        let engine = Podman::new()?;
        engine.import(&image, IMAGE)?;
        let command = [Image::java(), "-Xmx256m".into(), "-cp".into(), joined(&inside), framework.main_class()];
        let container = engine.start(IMAGE, &command)?;
        engine.wait_ready(&container)?;
        let port = port(&engine.logs(&container)?)?;
        Ok(Self { pid: container.pid, port, framework, _place: Place::Container { _engine: engine } })
    }

    /// Asks for both routes: `wrk` for so many seconds, the others so often. Returns how often each was answered; with `wrk`,
    /// up to [`CONNECTIONS`] requests more may have been served.
    pub fn ask(&self, load: Load, seconds: u32, times: u32) -> Result<u32> {
        match load {
            Load::Wrk => self.ask_by_wrk(seconds),
            Load::Ab => self.ask_by_ab(times),
            Load::Client => self.ask_by_client(times),
        }
    }

    fn ask_by_wrk(&self, seconds: u32) -> Result<u32> {
        let mut wrk = Command::new(directory().join("wrk/usr/bin/wrk"));
        wrk.env("LD_LIBRARY_PATH", library(&directory().join(LUA))?);
        wrk.args(["--threads", "1", "--connections", &CONNECTIONS.to_string(), "--duration", &format!("{seconds}s")]);
        wrk.arg("--script").arg(sources().join("alternate.lua")).arg(self.address(""));
        let said = Running::spawn("wrk", &mut wrk)?.finish(LOADED)?;
        let all = said.stdout.lines().find_map(|line| line.split_once(" requests in ")?.0.trim().parse::<u32>().ok());
        let has_failed = ["Non-2xx", "Socket errors"].iter().any(|text| said.stdout.contains(text));
        all.filter(|_| !has_failed).map(|all| all / 2).with_context(|| format!("what wrk says: {said:?}"))
    }

    fn ask_by_ab(&self, times: u32) -> Result<u32> {
        let ask = |route: &str| {
            let mut ab = Command::new("ab");
            let connections = (CONNECTIONS / 2).to_string();
            // Jersey closes connections after an answer, and ab takes their end for another answer.
            let keeps = if self.framework == Framework::Jersey { None } else { Some("-k") };
            ab.args(["-q", "-l", "-c", &connections, "-n", &times.to_string()]).args(keeps).arg(self.address(route));
            Running::spawn("ab", &mut ab)
        };
        let both = [ask("/cart")?, ask("/order")?];
        for ab in both {
            let said = ab.finish(LOADED)?;
            let is_whole = said.stdout.contains("Failed requests:        0") && !said.stdout.contains("Non-2xx");
            ensure!(is_whole && said.code() == Some(0), "what ab says: {said:?}");
        }
        Ok(times)
    }

    fn ask_by_client(&self, times: u32) -> Result<u32> {
        let class_path = joined(&self.framework.class_path()?);
        let mut client = Command::new(java::tool("java"));
        client.args(["-Xmx128m", "-cp", &class_path, &self.framework.main_class()]);
        let said =
            Running::spawn("a client", client.args([self.port.to_string(), times.to_string()]))?.finish(LOADED)?;
        ensure!(said.code() == Some(0), "what a client says: {said:?}");
        Ok(times)
    }

    /// Of a route, such as `/metrics`, where the shop's own counters are.
    pub fn address(&self, route: &str) -> String {
        format!("http://127.0.0.1:{}{route}", self.port)
    }
}

/// A line is `port PORT`.
fn port(said: &str) -> Result<u16> {
    let number = said.lines().find_map(|line| line.strip_prefix("port "));
    number.and_then(|number| number.parse().ok()).with_context(|| format!("no port in '{said}'"))
}

/// The only directory of libraries of an unpacked package, whose name has the architecture.
fn library(package: &Path) -> Result<PathBuf> {
    let name = format!("{}-linux-gnu", env::consts::ARCH);
    let place = package.join("usr/lib").join(name);
    fs::metadata(&place).with_context(|| format!("looking for {}", place.display()))?;
    Ok(place)
}
