//! Reads how a program is called in OpenTelemetry, by the settings that its SDKs and its Java agent take:
//! <https://opentelemetry.io/docs/languages/sdk-configuration/general/>,
//! <https://opentelemetry.io/docs/zero-code/java/agent/configuration/>.

use joular_data::model::target_text::TargetText;

use super::usable;

/// Variables that hold options of a JVM.
const OPTIONS: [&str; 2] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"];

/// What a program's settings say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub name: Option<TargetText>,
    pub version: Option<TargetText>,
}

impl Declared {
    /// Of the text of `/proc/PID/environ` and the words of a command line. Properties of a JVM go before variables, and
    /// a name of its own before one among the attributes.
    pub fn read(environment: &[u8], command_line: &[TargetText]) -> Self {
        let environment = String::from_utf8_lossy(environment);
        let variable =
            |name: &str| environment.split('\0').find_map(|variable| variable.strip_prefix(name)?.strip_prefix('='));
        let in_variables = OPTIONS.into_iter().filter_map(variable).flat_map(str::split_whitespace);
        let words: Vec<&str> = command_line.iter().map(TargetText::raw).chain(in_variables).collect();
        let property =
            |name: &str| words.iter().find_map(|word| word.strip_prefix("-D")?.strip_prefix(name)?.strip_prefix('='));
        let attributes = [property("otel.resource.attributes"), variable("OTEL_RESOURCE_ATTRIBUTES")];
        let attribute = |name: &str| attributes.iter().flatten().find_map(|text| attribute(text, name));
        let names = [property("otel.service.name"), variable("OTEL_SERVICE_NAME"), attribute("service.name")];
        Self {
            name: names.into_iter().flatten().find_map(usable),
            version: attribute("service.version").and_then(usable),
        }
    }
}

/// The value of an attribute in `key=value,key=value`.
fn attribute<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split(',').find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_called_as_its_settings_say() {
        for (environment, command, expected) in [
            ("A=1\0OTEL_SERVICE_NAME=checkout\0", "java Main", (Some("checkout"), None)),
            ("OTEL_SERVICE_NAME=a", "java -Dotel.service.name=b Main", (Some("b"), None)),
            ("JAVA_TOOL_OPTIONS=-Xmx1g -Dotel.service.name=c\0", "java Main", (Some("c"), None)),
            (
                "OTEL_RESOURCE_ATTRIBUTES=service.name=d, service.version=1.2,team=x",
                "java Main",
                (Some("d"), Some("1.2")),
            ),
            (
                "OTEL_SERVICE_NAME=e\0OTEL_RESOURCE_ATTRIBUTES=service.name=d,service.version=1",
                "java -Dotel.resource.attributes=service.version=2 Main",
                (Some("e"), Some("2")),
            ),
            ("OTEL_SERVICE_NAME=\0XOTEL_SERVICE_NAME=f\0OTEL_SERVICE_NAMES=g", "java Main", (None, None)),
            ("", "", (None, None)),
        ] {
            let line: Vec<TargetText> = command.split(' ').map(Into::into).collect();
            let Declared { name, version } = Declared::read(environment.as_bytes(), &line);
            let found = (name.as_ref().map(TargetText::raw), version.as_ref().map(TargetText::raw));
            assert_eq!(found, expected, "{environment:?} {command}");
        }
    }

    #[test]
    fn any_bytes_are_read() {
        let environment = [b"OTEL_SERVICE_NAME=\xff\xfe".as_slice(), &[0; 100], &[b'x'; 10_000]].concat();
        assert_eq!(Declared::read(&environment, &[]).name, Some("\u{fffd}\u{fffd}".into()));
    }
}
