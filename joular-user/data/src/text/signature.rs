//! Writes methods' signatures as people do: `(J[Ljava/lang/Long;I)I` becomes `(long, Long[], int)`.
//! It also names methods that share a name so that they can be told apart.
//!
//! What is not a descriptor stays as it is.

use std::collections::{BTreeSet, HashMap};

use crate::model::target_text::TargetText;

/// What the JVM allows.
const MOST_DIMENSIONS: usize = 255;

/// A descriptor, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature<'a> {
    parameters: Vec<Type<'a>>,
    returns: Type<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Type<'a> {
    /// `int`, or a class with slashes.
    name: &'a str,
    dimensions: usize,
}

/// How much of a signature is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Parameters, classes without their packages.
    Short,
    /// Parameters, classes with their packages.
    Packages,
    /// Parameters and what is returned, in which a compiler's bridges differ.
    Full,
}

impl Form {
    const ALL: [Self; 3] = [Self::Short, Self::Packages, Self::Full];
}

impl<'a> Signature<'a> {
    /// `None` if it is not the descriptor of a method.
    pub fn parse(descriptor: &'a str) -> Option<Self> {
        let mut rest = descriptor.strip_prefix('(')?;
        let mut parameters = Vec::new();
        while !rest.starts_with(')') {
            let (parameter, behind) = Type::parse(rest)?;
            parameters.push(parameter);
            rest = behind;
        }
        let rest = rest.strip_prefix(')')?;
        let (returns, rest) = match rest.strip_prefix('V') {
            Some(rest) => (Type { name: "void", dimensions: 0 }, rest),
            None => Type::parse(rest)?,
        };
        rest.is_empty().then_some(Self { parameters, returns })
    }

    /// How many parameters it has.
    pub const fn arity(&self) -> usize {
        self.parameters.len()
    }

    fn text(&self, form: Form) -> String {
        let has_packages = form != Form::Short;
        let parameters: Vec<String> = self.parameters.iter().map(|each| each.text(has_packages)).collect();
        let parameters = format!("({})", parameters.join(", "));
        if form == Form::Full { format!("{parameters}: {}", self.returns.text(true)) } else { parameters }
    }
}

impl<'a> Type<'a> {
    /// The first type of a text, and what stands behind it.
    fn parse(text: &'a str) -> Option<(Self, &'a str)> {
        let element = text.trim_start_matches('[');
        let dimensions = text.len() - element.len();
        if dimensions > MOST_DIMENSIONS {
            return None;
        }
        if let Some(class) = element.strip_prefix('L') {
            let (name, rest) = class.split_once(';')?;
            let is_sound = !name.contains(['[', '(']) && name.split('/').all(|part| !part.is_empty());
            return is_sound.then_some((Self { name, dimensions }, rest));
        }
        let name = match element.bytes().next()? {
            b'B' => "byte",
            b'C' => "char",
            b'D' => "double",
            b'F' => "float",
            b'I' => "int",
            b'J' => "long",
            b'S' => "short",
            b'Z' => "boolean",
            _ => return None,
        };
        Some((Self { name, dimensions }, &element[1..]))
    }

    fn text(&self, has_package: bool) -> String {
        let class = if has_package { self.name } else { self.name.rsplit('/').next().unwrap_or(self.name) };
        class.replace('/', ".") + &"[]".repeat(self.dimensions)
    }
}

/// `(long, Long[], int)`; what is not a descriptor stays as it is.
pub fn readable(descriptor: &TargetText) -> TargetText {
    written(descriptor.raw(), Form::Short).into()
}

/// What tells a method from others, apart from how it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Method<'a> {
    /// With its class, if it has one.
    pub name: &'a str,
    pub signature: Option<&'a str>,
    pub module: Option<&'a str>,
}

impl<'a> Method<'a> {
    pub fn new(name: &'a TargetText, signature: Option<&'a TargetText>, module: Option<&'a TargetText>) -> Self {
        Self { name: name.raw(), signature: signature.map(TargetText::raw), module: module.map(TargetText::raw) }
    }
}

/// Names of methods, each with as much of signature and module as it takes to tell it from the
/// others here. A method whose name is unique has its name only.
pub fn told_apart(methods: &[Method<'_>]) -> Vec<TargetText> {
    let mut twins: HashMap<&str, Vec<&Method<'_>>> = HashMap::new();
    for method in methods {
        twins.entry(method.name).or_default().push(method);
    }
    let forms: HashMap<&str, (Option<Form>, bool)> = twins.iter().map(|(name, twins)| (*name, needed(twins))).collect();
    let name = |method: &Method<'_>| {
        let mut shown = method.name.to_owned();
        let (form, has_module) = forms.get(method.name).copied().unwrap_or_default();
        if let (Some(form), Some(signature)) = (form, method.signature) {
            shown.push_str(&written(signature, form));
        }
        if let Some(module) = method.module.filter(|_| has_module) {
            shown = format!("{shown} ({module})");
        }
        TargetText::from(shown)
    };
    methods.iter().map(name).collect()
}

/// What methods of one name differ in: how much of a signature shows it, and whether the module
/// does.
fn needed(twins: &[&Method<'_>]) -> (Option<Form>, bool) {
    let has_modules = twins.iter().any(|twin| twin.module != twins[0].module);
    let signatures: BTreeSet<&str> = twins.iter().filter_map(|twin| twin.signature).collect();
    if twins.iter().all(|twin| twin.signature == twins[0].signature) {
        return (None, has_modules);
    }
    let tells = |form: &Form| {
        let shown: BTreeSet<String> = signatures.iter().map(|each| written(each, *form)).collect();
        shown.len() == signatures.len()
    };
    (Some(Form::ALL.into_iter().find(tells).unwrap_or(Form::Full)), has_modules)
}

fn written(descriptor: &str, form: Form) -> String {
    Signature::parse(descriptor).map_or_else(|| descriptor.to_owned(), |signature| signature.text(form))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_descriptor_is_read_as_a_method_is_written() {
        for (descriptor, expected) in [
            ("()V", "()"),
            ("(J[Ljava/lang/Long;I)I", "(long, Long[], int)"),
            ("(BCDFISZ)J", "(byte, char, double, float, int, short, boolean)"),
            ("([[[D[Lcom/acme/Map$Entry;)[I", "(double[][][], Map$Entry[])"),
            ("(LUnnamed;)V", "(Unnamed)"),
            // No descriptors.
            ("", ""),
            ("(", "("),
            ("()", "()"),
            ("(I", "(I"),
            ("(Ljava/lang/Long)V", "(Ljava/lang/Long)V"),
            ("(V)V", "(V)V"),
            ("(L;)V", "(L;)V"),
            ("(La//b;)V", "(La//b;)V"),
            ("()VV", "()VV"),
            ("(int, long)", "(int, long)"),
            ("(\u{1b}[2J)V", "(\u{1b}[2J)V"),
        ] {
            assert_eq!(readable(&descriptor.into()), expected, "{descriptor:?}");
        }
        assert_eq!(Signature::parse(&format!("({}I)V", "[".repeat(256))), None);
    }

    fn names(methods: &[(&str, Option<&str>, Option<&str>)]) -> Vec<TargetText> {
        let methods = methods.iter().map(|&(name, signature, module)| Method { name, signature, module });
        told_apart(&methods.collect::<Vec<_>>())
    }

    #[test]
    fn methods_of_one_name_have_as_much_as_tells_them_apart() {
        let alone = [("Shop.sell", Some("(I)V"), None), ("hash", None, Some("libz.so.1"))];
        assert_eq!(names(&alone), ["Shop.sell", "hash"]);
        let overloads = [("Query.query", Some("(I)V"), None), ("Query.query", Some("(Ljava/lang/String;)V"), None)];
        assert_eq!(names(&overloads), ["Query.query(int)", "Query.query(String)"]);
        let packages = [("f", Some("(La/List;)V"), None), ("f", Some("(Lb/List;)V"), None)];
        assert_eq!(names(&packages), ["f(a.List)", "f(b.List)"]);
        let bridges = [("get", Some("()Ljava/lang/Object;"), None), ("get", Some("()Lb/Shop;"), None)];
        assert_eq!(names(&bridges), ["get(): java.lang.Object", "get(): b.Shop"]);
        let libraries = [("hash", None, Some("libz.so.1")), ("hash", None, Some("libx.so"))];
        assert_eq!(names(&libraries), ["hash (libz.so.1)", "hash (libx.so)"]);
        let mixed = [("main", Some("([Ljava/lang/String;)V"), None), ("main", None, Some("java"))];
        assert_eq!(names(&mixed), ["main(String[])", "main (java)"]);
    }

    const TYPES: &str = r"\[{0,3}([BCDFIJSZ]|L[a-z]{1,3}(/[A-Z$é]{1,3}){0,2};)";

    proptest! {
        #[test]
        fn every_parameter_is_there(types in prop::collection::vec(TYPES, 0..6), returns in TYPES) {
            let descriptor = format!("({}){returns}", types.concat());
            let signature = Signature::parse(&descriptor).unwrap();
            prop_assert_eq!(signature.arity(), types.len());
            let text = readable(&descriptor.as_str().into()).into_raw();
            let inside = text.strip_prefix('(').unwrap().strip_suffix(')').unwrap();
            let written = if inside.is_empty() { 0 } else { inside.split(", ").count() };
            prop_assert_eq!(written, types.len());
            for (one, parameter) in types.iter().zip(inside.split(", ")) {
                prop_assert_eq!(one.matches('[').count(), parameter.matches("[]").count());
            }
        }

        #[test]
        fn any_text_is_taken(text in r"\PC*|[()\[LIJV;/a]{0,12}") {
            let shown = readable(&text.as_str().into());
            prop_assert!(Signature::parse(&text).is_some() || shown == text.as_str());
        }

        #[test]
        fn what_differs_is_told_apart(signatures in prop::collection::hash_set(r"\([IJ]{0,2}(La/A;|Lb/A;)?\)[VI]", 1..8)) {
            let methods: Vec<_> =
                signatures.iter().map(|text| Method { name: "m", signature: Some(text), module: None }).collect();
            let names: BTreeSet<TargetText> = told_apart(&methods).into_iter().collect();
            prop_assert_eq!(names.len(), signatures.len());
        }
    }
}
