//! Knows whose code packages are: tables of libraries, and of what main classes say.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use serde::Deserialize;

/// What comes with the program.
const BUILT_IN: &str = include_str!("known.toml");

/// Names of packages and classes, each with what is said of all that is below it.
#[derive(Clone, Debug, Default)]
pub struct Known {
    packages: HashMap<String, Kind>,
    /// What a main class says that its package does not.
    mains: HashMap<String, Arc<[String]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Library,
    /// Each package directly below is a library.
    Family,
    Program,
}

/// Whose a package is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose<'a> {
    /// Of the library that is all below this name.
    Library(&'a str),
    /// An application's that is below this name.
    Program(&'a str),
    /// Nothing is known of it, so it is an application's.
    Unknown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    libraries: Vec<String>,
    families: Vec<String>,
    programs: Vec<String>,
    main: Vec<Main>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Main {
    classes: Vec<String>,
    #[serde(default)]
    app: Vec<String>,
}

impl Known {
    /// What comes with the program.
    pub fn built_in() -> &'static Self {
        // A test reads it, too.
        static KNOWN: LazyLock<Known> = LazyLock::new(|| Known::parse(BUILT_IN).unwrap_or_default());
        &KNOWN
    }

    pub(super) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let File { libraries, families, programs, main } = toml::from_str(text)?;
        let of_kind = |names: Vec<String>, kind| names.into_iter().map(move |name| (name, kind));
        let packages = of_kind(libraries, Kind::Library)
            .chain(of_kind(families, Kind::Family))
            .chain(of_kind(programs, Kind::Program));
        let of_main = |Main { classes, app }: Main| {
            let app: Arc<[String]> = app.into();
            classes.into_iter().map(move |class| (class, app.clone()))
        };
        Ok(Self { packages: packages.collect(), mains: main.into_iter().flat_map(of_main).collect() })
    }

    pub(super) fn whose<'a>(&self, package: &'a str) -> Whose<'a> {
        let longest = names_above(package).filter_map(|name| Some((name, *self.packages.get(name)?))).last();
        match longest {
            None => Whose::Unknown,
            Some((name, Kind::Library)) => Whose::Library(name),
            Some((name, Kind::Program)) => Whose::Program(name),
            Some((name, Kind::Family)) => {
                Whose::Library(names_above(package).find(|below| below.len() > name.len()).unwrap_or(name))
            }
        }
    }

    /// Packages that are the application's because the JVM was started with this class. None if that goes without saying,
    /// or the class launches the code of others.
    pub(super) fn app_of_main(&self, class: &str) -> Vec<String> {
        if let Some(app) = names_above(class).filter_map(|name| self.mains.get(name)).last() {
            return app.to_vec();
        }
        match self.whose(class.rsplit_once('.').map_or("", |(package, _)| package)) {
            Whose::Library(name) => vec![name.to_owned()],
            Whose::Program(_) | Whose::Unknown => Vec::new(),
        }
    }
}

/// The packages and classes that a class or package is in, shortest first, with itself: `com`, `com.acme`, `com.acme.Shop`,
/// `com.acme.Shop$Item`.
pub(super) fn names_above(name: &str) -> impl Iterator<Item = &str> {
    let ends = name.match_indices(['.', '$', '/']).map(|(at, _)| at).chain([name.len()]);
    ends.filter(|end| *end > 0).filter_map(|end| name.get(..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_that_comes_with_the_program_is_understood_and_says_nothing_twice() {
        let File { libraries, families, programs, main } = toml::from_str(BUILT_IN).unwrap();
        let classes = main.iter().flat_map(|main| &main.classes);
        assert!(libraries.len() > 150 && main.iter().any(|main| main.app.is_empty()));
        let mut names: Vec<&String> = libraries.iter().chain(&families).chain(&programs).collect();
        let mut mains: Vec<&String> = classes.collect();
        for names in [&mut names, &mut mains] {
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
            assert!(names.iter().all(|name| !name.is_empty() && !name.ends_with(['.', '*'])), "{names:?}");
        }
        // A library below a library would say nothing.
        let known = Known::built_in();
        for name in &libraries {
            let above = names_above(name).filter(|above| above.len() < name.len());
            let kind = above.filter_map(|above| known.packages.get(above)).last();
            assert_ne!(kind, Some(&Kind::Library), "{name}");
        }
    }

    #[test]
    fn the_longest_name_says_whose_a_package_is() {
        for (package, expected) in [
            ("java.util.concurrent", Whose::Library("java")),
            ("javafx.scene", Whose::Unknown),
            ("org.apache.catalina.core", Whose::Library("org.apache.catalina")),
            ("org.apache", Whose::Library("org.apache")),
            ("org.apachefoundation", Whose::Unknown),
            ("org.apache.solr.core", Whose::Program("org.apache.solr")),
            ("org.apache.solr.client.solrj", Whose::Library("org.apache.solr.client")),
            ("org.springframework.web", Whose::Library("org.springframework")),
            ("org.springframework.samples.petclinic", Whose::Program("org.springframework.samples")),
            ("com.sun.proxy", Whose::Library("com.sun.proxy")),
            ("jdk.proxy", Whose::Library("jdk.proxy")),
            ("com.google.common.collect", Whose::Library("com.google.common")),
            ("com.google.maps", Whose::Unknown),
            ("", Whose::Unknown),
        ] {
            assert_eq!(Known::built_in().whose(package), expected, "{package}");
        }
    }

    #[test]
    fn a_main_class_of_a_library_makes_it_the_app_unless_it_launches_others() {
        for (class, expected) in [
            ("org.h2.tools.Server", &["org.h2"][..]),
            ("org.apache.hadoop.hdfs.server.namenode.NameNode", &["org.apache.hadoop"]),
            ("org.apache.xalan.xslt.Process", &["org.apache.xalan", "org.apache.xml", "org.apache.xpath"]),
            ("com.sun.tools.javac.Main", &["com.sun.tools"]),
            ("kafka.Kafka", &["kafka", "org.apache.kafka"]),
            ("org.apache.catalina.startup.Bootstrap", &[]),
            ("org.apache.spark.deploy.SparkSubmit", &[]),
            ("org.springframework.boot.loader.launch.JarLauncher", &[]),
            ("org.springframework.samples.petclinic.PetClinicApplication", &[]),
            ("com.acme.Main", &[]),
            ("Main", &[]),
        ] {
            assert_eq!(Known::built_in().app_of_main(class), expected, "{class}");
        }
    }
}
