//! Turns the names in HotSpot's perf map into frames.
//!
//! HotSpot prints a Java method in its external form, `int
//! java.lang.String.indexOf(java.lang.String, int)`, and anything else that lives in its code cache
//! by a free name (`I2C/C2I adapters`, `Interpreter`, `StubRoutines (1)`). The external form has
//! all that a stable method key needs: class, name and, translated, the JVM signature.
//!
//! Hidden classes have an address in their name, new in every run
//! (`Main$$Lambda$14/0x00007ea4001800` up to JDK 20, `Main$$Lambda/0x…` since,
//! `LambdaForm$MH/0x…`). It would make every run's methods different from every other's. So it is
//! cut off, with the number that JDKs up to 20 put before it.

use std::{borrow::Cow, fmt::Write as _};

use joular_data::model::frame::{Frame, FrameKind};

use crate::runtimes::MAX_NAME_BYTES;

/// The frame that a name from a JVM's perf map stands for.
pub fn jvm_frame(name: &str) -> Frame {
    java_method(name).unwrap_or_else(|| Frame::new(FrameKind::Stub, name.trim()))
}

/// `RETURN CLASS.METHOD(ARGUMENT, ARGUMENT)`
fn java_method(text: &str) -> Option<Frame> {
    let text = text.trim();
    let (head, arguments) = text.split_at(text.rfind('(')?);
    let (returned, path) = head.split_once(' ')?;
    let (class, name) = path.rsplit_once('.')?;
    if returned.is_empty() || class.is_empty() || name.is_empty() || class.contains(' ') {
        return None;
    }
    let signature = match arguments[1..].strip_suffix(')') {
        Some(arguments) => Some(signature(arguments, returned)?),
        // Only a name that was cut short has no end.
        None if text.len() + 4 > MAX_NAME_BYTES => None,
        None => return None,
    };
    let class = stable_class(class).into_owned();
    let kind = if is_generated_wrapper(&class, name) { FrameKind::NativeWrapper } else { FrameKind::Compiled };
    Some(Frame { class: Some(class.into()), signature: signature.map(Into::into), ..Frame::new(kind, name) })
}

/// Methods without a body of their own, for which HotSpot makes a wrapper. The map does not tell
/// other native methods from compiled ones.
fn is_generated_wrapper(class: &str, name: &str) -> bool {
    class == "java.lang.invoke.MethodHandle" && (name.starts_with("linkTo") || name == "invokeBasic")
        || class == "jdk.internal.vm.Continuation" && matches!(name, "enterSpecial" | "doYield")
}

fn signature(arguments: &str, returned: &str) -> Option<String> {
    let mut signature = String::with_capacity(arguments.len() + returned.len() + 8);
    signature.push('(');
    for argument in arguments.split(", ").filter(|argument| !argument.is_empty()) {
        push_descriptor(&mut signature, argument)?;
    }
    signature.push(')');
    push_descriptor(&mut signature, returned)?;
    Some(signature)
}

/// `java.lang.String[]` → `[Ljava/lang/String;`
fn push_descriptor(signature: &mut String, external: &str) -> Option<()> {
    let mut element = external;
    while let Some(inner) = element.strip_suffix("[]") {
        signature.push('[');
        element = inner;
    }
    let primitive = match element {
        "boolean" => 'Z',
        "byte" => 'B',
        "char" => 'C',
        "short" => 'S',
        "int" => 'I',
        "long" => 'J',
        "float" => 'F',
        "double" => 'D',
        "void" => 'V',
        "" => return None,
        class if class.contains([' ', '(', ')', ';', '[']) => return None,
        class => {
            let class = stable_class(class);
            return write!(signature, "L{};", class.replace('.', "/")).ok();
        }
    };
    signature.push(primitive);
    Some(())
}

/// A class name without the parts that change from run to run.
pub fn stable_class(class: &str) -> Cow<'_, str> {
    let Some(at) = class.find("/0x").or_else(|| class.find("+0x")) else { return Cow::Borrowed(class) };
    let (name, address) = class.split_at(at);
    let rest = address[3..].trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
    if rest.len() == address.len() - 3 {
        return Cow::Borrowed(class);
    }
    let name = match name.split_once("$$Lambda$") {
        Some((host, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => {
            Cow::Owned(format!("{host}$$Lambda"))
        }
        _ => Cow::Borrowed(name),
    };
    if rest.is_empty() { name } else { Cow::Owned(format!("{name}{rest}")) }
}

/// A class as the JVM itself writes it (`java/util/Map$Entry`), with dots and without the parts
/// that change from run to run. JDK 11 numbers lambdas, and writes no address after them.
pub fn stable_internal_class(class: &str) -> String {
    let class = class.replace('/', ".");
    // The dot before an address was a slash.
    let class = class.replace(".0x", "/0x");
    let stable = stable_class(&class);
    match stable.split_once("$$Lambda$") {
        Some((host, number)) if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) => {
            format!("{host}$$Lambda")
        }
        _ => stable.into_owned(),
    }
}

/// A class as Java writes it, of its name in the JVM: arrays as `int[][]`. `None`: nothing can be called so.
pub fn java_class(name: &str) -> Option<String> {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    if dimensions == 0 {
        return Some(stable_internal_class(name));
    }
    let element = match element.strip_prefix('L').and_then(|rest| rest.strip_suffix(';')) {
        Some(class) => stable_internal_class(class),
        None => primitive(element)?.to_owned(),
    };
    Some(element + &"[]".repeat(dimensions))
}

/// A primitive type by its letter in signatures (JVM Specification, table 4.3-A).
fn primitive(letter: &str) -> Option<&'static str> {
    Some(match letter {
        "B" => "byte",
        "C" => "char",
        "D" => "double",
        "F" => "float",
        "I" => "int",
        "J" => "long",
        "S" => "short",
        "Z" => "boolean",
        _ => return None,
    })
}

/// A JVM signature in which classes are named as [`stable_internal_class`] names them.
pub fn stable_signature(signature: &str) -> String {
    if !signature.contains("0x") && !signature.contains("$$Lambda$") {
        return signature.to_owned();
    }
    let part = |part: &str| match part.find('L') {
        Some(at) if part.split_at(at).0.bytes().all(|byte| b"()[BCDFIJSZV".contains(&byte)) => {
            let (before, class) = part.split_at(at + 1);
            format!("{before}{}", stable_internal_class(class).replace('.', "/"))
        }
        _ => part.to_owned(),
    };
    signature.split(';').map(part).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use joular_data::model::target_text::TargetText;
    use proptest::prelude::*;

    use super::*;

    fn check(name: &str, kind: FrameKind, method: &str, signature: Option<&str>) {
        let frame = jvm_frame(name);
        assert_eq!(
            (frame.kind, frame.method().raw(), frame.signature.as_ref().map(TargetText::raw)),
            (kind, method, signature),
            "{name}"
        );
    }

    /// Lines of JDK 17.0.15, 21.0.8 and 25.0.2.
    #[test]
    fn classes_are_written_as_in_java() {
        for (name, expected) in [
            ("java/lang/String", Some("java.lang.String")),
            ("[B", Some("byte[]")),
            ("[[J", Some("long[][]")),
            ("[Ljava/util/HashMap$Node;", Some("java.util.HashMap$Node[]")),
            ("[X", None),
            ("[", None),
        ] {
            assert_eq!(java_class(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn java_methods() {
        use FrameKind::{Compiled, NativeWrapper};
        for (name, kind, method, signature) in [
            ("void java.lang.Object.<init>()", Compiled, "java.lang.Object.<init>", "()V"),
            ("char java.lang.String.charAt(int)", Compiled, "java.lang.String.charAt", "(I)C"),
            (
                "void java.lang.System.arraycopy(java.lang.Object, int, java.lang.Object, int, int)",
                Compiled,
                "java.lang.System.arraycopy",
                "(Ljava/lang/Object;ILjava/lang/Object;II)V",
            ),
            (
                "byte[] java.lang.AbstractStringBuilder.getValue()",
                Compiled,
                "java.lang.AbstractStringBuilder.getValue",
                "()[B",
            ),
            (
                "double Busy$In.area(int[], java.lang.String[][], long)",
                Compiled,
                "Busy$In.area",
                "([I[[Ljava/lang/String;J)D",
            ),
            ("int Busy$In.δelta(char)", Compiled, "Busy$In.δelta", "(C)I"),
            (
                "int jdk.proxy1.$Proxy0.compareTo(java.lang.Object)",
                Compiled,
                "jdk.proxy1.$Proxy0.compareTo",
                "(Ljava/lang/Object;)I",
            ),
            (
                "int java.lang.invoke.MethodHandle.linkToStatic(int, int, java.lang.invoke.MemberName)",
                NativeWrapper,
                "java.lang.invoke.MethodHandle.linkToStatic",
                "(IILjava/lang/invoke/MemberName;)I",
            ),
            (
                "void jdk.internal.vm.Continuation.enterSpecial(jdk.internal.vm.Continuation, boolean, boolean)",
                NativeWrapper,
                "jdk.internal.vm.Continuation.enterSpecial",
                "(Ljdk/internal/vm/Continuation;ZZ)V",
            ),
            // Kotlin allows spaces in names.
            ("void com.acme.Tests.it works(short, float)", Compiled, "com.acme.Tests.it works", "(SF)V"),
        ] {
            check(name, kind, method, Some(signature));
        }
    }

    #[test]
    fn hidden_classes_have_the_same_key_in_every_run() {
        for (name, method, signature) in [
            // 17
            (
                "double Busy$$Lambda$1/0x00007ea4001800.area(int[], java.lang.String[][], long)",
                "Busy$$Lambda.area",
                "([I[[Ljava/lang/String;J)D",
            ),
            (
                "void java.util.Comparator$$Lambda$25/0x00007f7ea404b5d0.<init>(java.util.function.Function)",
                "java.util.Comparator$$Lambda.<init>",
                "(Ljava/util/function/Function;)V",
            ),
            (
                "int java.lang.invoke.LambdaForm$MH/0x00007f7ea400e000.invoke(java.lang.Object, java.lang.Object)",
                "java.lang.invoke.LambdaForm$MH.invoke",
                "(Ljava/lang/Object;Ljava/lang/Object;)I",
            ),
            // 21
            (
                "java.lang.Object Busy$$Lambda/0x0000000100002d28.apply(java.lang.Object)",
                "Busy$$Lambda.apply",
                "(Ljava/lang/Object;)Ljava/lang/Object;",
            ),
            (
                "int java.lang.invoke.LambdaForm$DMH/0x0000000100089c00.invokeStatic(java.lang.Object, int, int)",
                "java.lang.invoke.LambdaForm$DMH.invokeStatic",
                "(Ljava/lang/Object;II)I",
            ),
            // 25
            (
                "java.lang.Object java.util.stream.Collectors$$Lambda/0x00000000260d2470.get()",
                "java.util.stream.Collectors$$Lambda.get",
                "()Ljava/lang/Object;",
            ),
            (
                "Foo$$Lambda/0x01[] Foo+0x0000000026080848.take(Bar$$Lambda$3/0x0a1b)",
                "Foo.take",
                "(LBar$$Lambda;)[LFoo$$Lambda;",
            ),
        ] {
            check(name, FrameKind::Compiled, method, Some(signature));
        }
    }

    #[test]
    fn what_is_no_method_is_a_stub() {
        for name in [
            "I2C/C2I adapters",
            "Interpreter",
            "StubRoutines (1)",
            "StubRoutines (initial stubs)",
            "vtable chunks",
            "throw_range_check_failed Runtime1 stub",
            "delayed StackOverflowError throw_exception",
            "Shared Runtime wrong_method_blob",
            "C2 Runtime multianewarray2",
            "Signature Handler Temp Buffer",
            "jni_fast_GetIntField",
            "_new_array_nozero_Java",
            "a b.c(",
            "a b.c(x y)",
            "(",
            " .()",
            "",
        ] {
            check(name, FrameKind::Stub, name.trim(), None);
        }
    }

    #[test]
    fn stable_classes() {
        for (class, expected) in [
            ("java.util.HashMap$Node", "java.util.HashMap$Node"),
            ("A$$Lambda$14/0x0000000800c03000", "A$$Lambda"),
            ("A$$Lambda$14/123", "A$$Lambda$14/123"),
            ("A/0x", "A/0x"),
            ("A/0xzz", "A/0xzz"),
            ("A$B/0x12$C", "A$B$C"),
        ] {
            assert_eq!(stable_class(class), expected);
        }
    }

    #[test]
    fn names_as_the_jvm_writes_them() {
        for (class, expected) in [
            ("java/util/HashMap$Node", "java.util.HashMap$Node"),
            ("Main", "Main"),
            ("Main$$Lambda$14", "Main$$Lambda"),
            ("a/Main$$Lambda$14+0x0000000800c03000", "a.Main$$Lambda"),
            ("a/Main$$Lambda+0x0000000800c03000", "a.Main$$Lambda"),
            ("java/lang/invoke/LambdaForm$MH+0x1a", "java.lang.invoke.LambdaForm$MH"),
            ("java/lang/invoke/LambdaForm$MH/0x1a", "java.lang.invoke.LambdaForm$MH"),
        ] {
            assert_eq!(stable_internal_class(class), expected);
        }
        for (signature, expected) in [
            ("(I[Ljava/lang/String;)V", "(I[Ljava/lang/String;)V"),
            ("(La/Main$$Lambda+0x08;I)La/B;", "(La/Main$$Lambda;I)La/B;"),
            ("(I[[La/Main$$Lambda$3;)La/Main$$Lambda.0x1f;", "(I[[La/Main$$Lambda;)La/Main$$Lambda;"),
        ] {
            assert_eq!(stable_signature(signature), expected);
        }
    }

    #[test]
    fn a_method_whose_name_was_cut_is_still_a_method() {
        let mut name = format!("void a.B.c({}", "java.lang.Object, ".repeat(80));
        name.truncate(MAX_NAME_BYTES);
        check(&name, FrameKind::Compiled, "a.B.c", None);
    }

    proptest! {
        #[test]
        fn never_panics(name in "\\PC{0,80}", shaped in "[a-z\\[\\]]{1,5} [a-zé.$/0x+]{1,30}\\([a-z,\\[\\] ]{0,20}\\)?") {
            let _ = jvm_frame(&name);
            let _ = jvm_frame(&shaped);
            let _ = (stable_internal_class(&shaped), stable_signature(&name));
        }
    }
}
